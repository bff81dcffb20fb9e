"""What the service answered: whole or refused, and as a model."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from prescore.errors import Refused, ServiceError
from prescore.http import bounds
from prescore.models import Problem
from prescore.models.base import Origin

REPLAYED = "Idempotency-Replayed"
_HOST = r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])"
_PAGE = re.compile(rf"(https?://{_HOST}(?::[0-9]{{1,5}})?)/ui/")
M = TypeVar("M", bound=BaseModel)
_HINTS = {  # for answers without problem+json, such as to HEAD or from a proxy
    401: "give a key by PRESCORE_KEY or --key-file",
    403: "the key does not allow this",
    404: "not found; is this the URL of a Prescore service?",
    413: "larger than the service, or a proxy before it, accepts",
}


def parsed(url: str, model: type[M], response: httpx.Response) -> M:
    """The answer of the service at `url` as a model, which knows its origin."""
    with understood(url, model):
        bounds.check_structure(response.content)
        return model.model_validate_json(response.content, context=origin(url, response))


def origin(url: str, response: httpx.Response) -> Origin:
    page = _PAGE.fullmatch(response.links.get("alternate", {}).get("url", ""))
    replayed = response.headers.get(REPLAYED) == "true"
    return Origin(url, pages=page[1] if page else "", replayed=replayed)


@contextmanager
def understood(url: str, model: type[BaseModel]) -> Iterator[None]:
    try:
        yield
    except bounds.TooMuch as error:
        raise not_prescore(url, str(error)) from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = "/".join(map(str, first["loc"])) or "the body"
        what = f"expected a {model.__name__}, found in {place}: {first['msg']}"
        raise not_prescore(url, what) from None


def not_prescore(url: str, what: str) -> ServiceError:
    detail = f"{what}; is {url} a Prescore service?"
    return ServiceError(Problem(title="not an answer of Prescore", detail=detail))


def is_right(response: httpx.Response) -> bool:
    return response.is_success or response.status_code == HTTPStatus.NOT_MODIFIED


def whole(response: httpx.Response, content: bytes) -> httpx.Response:
    """The answer with its body, which is unpacked."""
    unpacked = ("content-encoding", "content-length", "transfer-encoding")
    headers = [each for each in response.headers.multi_items() if each[0] not in unpacked]
    return httpx.Response(
        response.status_code,
        headers=headers,
        content=content,
        request=response.request,
        extensions=response.extensions,
    )


def refusal(response: httpx.Response) -> Refused | ServiceError:
    """The error for a whole answer that is not right."""
    kind = Refused if response.is_client_error else ServiceError
    return kind(_problem(response), retry_after(response))


def retry_after(response: httpx.Response) -> float | None:
    """The header Retry-After, a number or a date, as seconds from now."""
    value = response.headers.get("Retry-After", "").strip()
    if re.fullmatch("[0-9]{1,9}", value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, seconds)


def _problem(response: httpx.Response) -> Problem:
    status = response.status_code
    try:
        bounds.check_structure(response.content)
        problem = Problem.model_validate_json(response.content)
    except (ValidationError, bounds.TooMuch):
        problem = Problem(detail=_hint(response))
    return problem.model_copy(
        update={"status": status, "title": problem.title or response.reason_phrase}
    )


def _hint(response: httpx.Response) -> str:
    if response.is_redirect:
        # A POST would become a GET, and the key would be sent to another host.
        return "a redirect, which is not followed; use the URL that it leads to"
    if response.status_code == 401 and "Authorization" in response.request.headers:
        return "the key is not accepted: it may be mistyped, expired or revoked"
    return _HINTS.get(response.status_code, "")
