"""Gives every request an id (in its answer and its log lines), logs it, and counts it in /metrics.
Its answer tells where people reach the page, if the operator has said it.

At level `info` only requests that failed or took long are logged: a line costs 30 to 100 µs, and a
whole poll 430 to 740 µs.
"""

import time
import uuid

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.telemetry import Telemetry

log = structlog.get_logger()

_LONG = 1.0  # seconds
OF_MONITORS = ("/livez", "/readyz", "/metrics")  # requested every few seconds, and not logged
_LONGEST_PATH = 500


class AccessLog:
    def __init__(self, app: ASGIApp, telemetry: Telemetry, public_url: str | None = None) -> None:
        self._app = app
        self._telemetry = telemetry
        link = f'<{public_url}/ui/>; rel="alternate"; type="text/html"'
        self._links = [(b"link", link.encode())] if public_url else []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = name
        structlog.contextvars.bind_contextvars(request_id=name)
        began = time.perf_counter()
        status: int | None = None  # None: the server stopped before there was an answer

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = [(b"x-request-id", name.encode()), *self._links]
                message["headers"] = [*message["headers"], *own]
            await send(message)

        try:
            await self._app(scope, receive, named)
        except Exception:
            status = status or 500  # the answer of `problems`, which is made after this
            raise
        finally:
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "none")  # not the path, which contains ids
            self._telemetry.request(scope["method"], route, status, seconds)
            _log(scope, status, seconds)


def _log(scope: Scope, status: int | None, seconds: float) -> None:
    """Log a request, without its query and headers, which may contain secrets."""
    if scope["path"] in OF_MONITORS:
        return
    is_odd = status is None or status >= 400 or seconds > _LONG
    (log.info if is_odd else log.debug)(
        "request",
        method=scope["method"],
        path=scope["path"][:_LONGEST_PATH],
        status=status,
        milliseconds=round(1000 * seconds, 1),
    )
