"""Answers of the service: read within bounds, as models or as errors.

A service, or what stands in its place, may be hostile: an answer that never ends, or that unpacks
to a thousand times its size, is refused when the bound is reached and not after it was read.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from prescore.errors import Refused, ServiceError
from prescore.models import Problem
from prescore.models.base import Origin

ANSWER_BYTES = 16 << 20  # of JSON: a page has at most 10 MB; parsed, a byte takes at most 40
ERROR_BYTES = 1 << 20  # of a refusal; a longer one is told without its text
PIECE_BYTES = 1 << 16  # what is received at once may unpack to a thousand times as much
ANSWER_SECONDS = 600.0  # for the body of an answer that is read as a whole
REPLAYED = "Idempotency-Replayed"
_HOST = r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])"
_PAGE = re.compile(rf"(https?://{_HOST}(?::[0-9]{{1,5}})?)/ui/")
_HINTS = {  # for answers without problem+json, such as to HEAD or from a proxy
    401: "give a key by PRESCORE_KEY or --key-file",
    403: "the key does not allow this",
    404: "not found; is this the URL of a Prescore service?",
    413: "larger than the service, or a proxy before it, accepts",
}
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Reply:
    """A whole answer of the service at a URL."""

    service: str
    response: httpx.Response  # without its body
    content: bytes

    @property
    def headers(self) -> httpx.Headers:
        return self.response.headers

    def parsed(self, model: type[M]) -> M:
        """The content as a model, which knows its origin."""
        # Not model_validate_json: it takes 100 times the bytes of a hostile answer.
        with translate_invalid(self.service, model):
            return model.model_validate(from_json(self.content), context=self.origin)

    @property
    def origin(self) -> Origin:
        page = _PAGE.fullmatch(self.response.links.get("alternate", {}).get("url", ""))
        replayed = self.headers.get(REPLAYED) == "true"
        return Origin(self.service, pages=page[1] if page else "", replayed=replayed)


@contextmanager
def translate_invalid(service: str, model: type[BaseModel]) -> Iterator[None]:
    """Raise an error of the service for an answer that is no JSON, or not of this model."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = "/".join(map(str, first["loc"])) or "the body"
        what = f"expected a {model.__name__}, found in {place}: {first['msg']}"
        raise build_foreign_error(service, what) from None
    except ValueError as error:  # also of JSON that is nested too deeply
        what = f"expected a {model.__name__}, found in the body: Invalid JSON: {error}"
        raise build_foreign_error(service, what) from None


def read_pieces(service: str, response: httpx.Response, most: float) -> Iterator[bytes]:
    """The body as it comes, unpacked, in small pieces; raises for more than `most` bytes."""
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    if coding not in ("", "identity", "gzip"):  # a bomb may be packed twice
        raise build_foreign_error(
            service, f"expected an answer as it is, or gzip, found {coding!r:.60}"
        )
    size = 0
    for unpacked in response.iter_bytes():
        size += len(unpacked)
        if size > most:
            what = f"expected an answer of at most {most} bytes, found a longer one"
            raise build_foreign_error(service, what)
        for start in range(0, len(unpacked), PIECE_BYTES):
            yield unpacked[start : start + PIECE_BYTES]


def read_content(service: str, response: httpx.Response, most: int) -> bytes:
    """The whole body."""
    until = time.monotonic() + ANSWER_SECONDS
    content = bytearray()
    for piece in read_pieces(service, response, most):
        content += piece
        if time.monotonic() > until:
            what = f"expected a whole answer within {ANSWER_SECONDS:g} s, found a part"
            raise build_foreign_error(service, what)
    return bytes(content)


def build_foreign_error(service: str, what: str) -> ServiceError:
    detail = f"{what}; is {service} a Prescore service?"
    return ServiceError(Problem(title="not an answer of Prescore", detail=detail))


def is_right(response: httpx.Response) -> bool:
    return response.is_success or response.status_code == HTTPStatus.NOT_MODIFIED


def read_refusal(service: str, response: httpx.Response) -> Refused | ServiceError:
    """The error for an answer that is not right, whose body has not been read."""
    try:
        body = read_content(service, response, ERROR_BYTES)
    except (ServiceError, httpx.DecodingError):
        body = b""
    kind = Refused if response.is_client_error else ServiceError
    return kind(_parse_problem(response, body), read_retry_after(response))


def read_retry_after(response: httpx.Response) -> float | None:
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


def _parse_problem(response: httpx.Response, body: bytes) -> Problem:
    try:
        problem = Problem.model_validate(from_json(body))
    except ValueError:
        problem = Problem(detail=_advise(response))
    title = problem.title or response.reason_phrase
    return problem.model_copy(update={"status": response.status_code, "title": title})


def _advise(response: httpx.Response) -> str:
    if response.is_redirect:
        # A POST would become a GET, and the key would be sent to another host.
        return "a redirect, which is not followed; use the URL that it leads to"
    if response.status_code == 401 and "Authorization" in response.request.headers:
        return "the key is not accepted: it may be mistyped, expired or revoked"
    return _HINTS.get(response.status_code, "")
