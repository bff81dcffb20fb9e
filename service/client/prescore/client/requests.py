"""Requests that the methods of a client share: read, list, submit once, compute, change, delete."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from prescore.client.bodies import json_body, without_none
from prescore.client.listing import Listing
from prescore.errors import InvalidArgument
from prescore.http.answers import REPLAYED, Reply
from prescore.http.polling import await_end
from prescore.http.retries import IN_FLIGHT, PASSING
from prescore.http.transport import HttpRequest, Transport, segment
from prescore.models import Answer, Run

A = TypeVar("A", bound=Answer)
M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", bound=Run)
Parameter = str | float | None


class Calls:
    """Calls to the service over a transport; subclasses have the methods of an area."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _get(self, model: type[M], path: str, **params: Parameter) -> M:
        return self._transport.get(model, path, query(params))

    def _list(self, model: type[A], name: str, path: str, **params: Parameter) -> Listing[A]:
        return Listing(self._transport, name, model, path, query(params))

    def _delete(self, path: str) -> None:
        self._transport.send(HttpRequest("DELETE", path))

    def _change(
        self,
        model: type[M],
        method: str,
        path: str,
        fields: Mapping[str, Any] | None = None,
        *,
        hold: float = 0.0,
        once: bool = False,
    ) -> M:
        """Repeated after failures, unless only `once`: a repetition might do it twice."""
        request = json_request(method, path, fields, hold=hold)
        send = self._transport.send_once if once else self._transport.send
        return send(request).parsed(model)

    def _submit(
        self, model: type[R], fields: Mapping[str, Any], *, wait: int = 0, key: str | None = None
    ) -> R:
        """Begin a run once, however often the request has to be sent."""
        headers = {"Idempotency-Key": _quoted(key or uuid.uuid4().hex)}
        if wait:
            headers["Prefer"] = f"wait={wait}"
        request = json_request("POST", model.PLACE, without_none(fields), headers, wait)
        attempts = 0

        def attempt() -> Reply:
            nonlocal attempts
            attempts += 1
            return self._transport.send_once(request)

        reply = self._transport.repeat(attempt, statuses=PASSING | {IN_FLIGHT})
        if attempts > 1:  # the first may have begun the run, and its answer was lost
            reply.headers.pop(REPLAYED, None)
        return reply.parsed(model)

    def _compute(
        self,
        model: type[R],
        fields: Mapping[str, Any],
        timeout: float | None,
        on_change: Callable[[R], None] | None = None,
    ) -> R:
        """Begin a run and wait for its end."""
        begun = self._submit(model, fields)
        return await_end(self._transport, model, begun.place(), timeout, on_change)


def json_request(
    method: str,
    path: str,
    fields: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    hold: float = 0.0,
) -> HttpRequest:
    if fields is None:
        return HttpRequest(method, path, headers=headers or {}, hold=hold)
    headers = {"Content-Type": "application/json", **(headers or {})}
    return HttpRequest(method, path, headers=headers, body=json_body(fields), hold=hold)


def run_path(model: type[Run], id_: str) -> str:
    return f"{model.PLACE}/{segment(id_)}"


def label_params(labels: Mapping[str, str] | None) -> dict[str, str]:
    return {f"label.{name}": value for name, value in (labels or {}).items()}


def query(params: Mapping[str, Parameter]) -> dict[str, str]:
    """Parameters of a query, without those that are None."""
    return {name: str(value) for name, value in params.items() if value is not None}


def _quoted(key: str) -> str:
    if not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        raise InvalidArgument("an idempotency key has 1 to 255 visible ASCII characters")
    escaped = key.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'
