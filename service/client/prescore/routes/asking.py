"""What the requests share: bodies in JSON, submissions that are made once, answers as models."""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from prescore.errors import InvalidArgument
from prescore.files import captions
from prescore.http import answers, polling, retries
from prescore.http.addresses import Address
from prescore.http.retries import PASSING
from prescore.http.steps import Request, Send, Steps, segment
from prescore.models import Run

JSON = {"Content-Type": "application/json"}
IN_FLIGHT = 409  # the first attempt, whose answer was lost, is still being answered

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", bound=Run)


def gotten(
    address: Address, model: type[M], path: str, params: Mapping[str, str] | None = None
) -> Steps[M]:
    response = yield from retries.sent(address, Request("GET", path, params=params or {}))
    return answers.parsed(address.url, model, response)


def submitted(
    address: Address,
    model: type[M],
    path: str,
    fields: Mapping[str, Any],
    *,
    wait: int = 0,
    key: str | None = None,
) -> Steps[M]:
    """Begin a run once, however often the request has to be sent."""
    headers = {**JSON, "Idempotency-Key": _quoted(key or uuid.uuid4().hex)}
    if wait:
        headers["Prefer"] = f"wait={wait}"
    request = Request("POST", path, headers=headers, body=_body(fields), hold=wait)
    attempts = 0

    def attempt() -> Steps[httpx.Response]:
        nonlocal attempts
        attempts += 1
        response: httpx.Response = yield Send(request)
        return response

    response = yield from retries.persistently(address, attempt, statuses=PASSING | {IN_FLIGHT})
    if attempts > 1:  # the first may have begun the run, and its answer was lost
        response.headers.pop(answers.REPLAYED, None)
    return answers.parsed(address.url, model, response)


def computed(
    address: Address,
    model: type[R],
    fields: Mapping[str, Any],
    timeout: float | None,
    on_change: Callable[[R], None] | None = None,
) -> Steps[R]:
    """Begin a run and wait for its end."""
    begun = yield from submitted(address, model, model.PLACE, fields)
    return (yield from polling.ended(address, model, begun.place(), timeout, on_change))


def canceled(address: Address, model: type[R], id_: str) -> Steps[R]:
    request = Request("POST", f"{of(model, id_)}/cancel")
    response = yield from retries.sent(address, request)
    return answers.parsed(address.url, model, response)


def of(model: type[Run], id_: str) -> str:
    """The path of a run."""
    return f"{model.PLACE}/{segment(id_)}"


def given(**params: str | float | None) -> dict[str, str]:
    """Parameters of a query, without those that are None."""
    return {name: str(value) for name, value in params.items() if value is not None}


def labelled(labels: Mapping[str, str] | None) -> dict[str, str]:
    return {f"label.{name}": value for name, value in (labels or {}).items()}


def listed(
    items: str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]] | None,
) -> list[dict[str, str]] | None:
    """Captions in the form that the service takes."""
    return None if items is None else captions.normalized(items)


def names(field: str, found: str | Sequence[str] | None) -> str | list[str] | None:
    if isinstance(found, str) and found != "all":  # a str is a Sequence[str] too
        raise InvalidArgument(f"{field}: expected a list of names, found the text {found!r:.60}")
    return found if found is None or isinstance(found, str) else list(found)


def _quoted(key: str) -> str:
    if not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        raise InvalidArgument("an idempotency key has 1 to 255 visible ASCII characters")
    escaped = key.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'


def _body(fields: Mapping[str, Any]) -> bytes:
    """The fields as JSON, without those that are None."""
    found = {name: value for name, value in fields.items() if value is not None}
    try:
        # In ASCII: a lone surrogate in a caption reaches the service, which says where it stands.
        return json.dumps(found, allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the request cannot be written as JSON: {error}") from None
