"""Gives each request an id (in answer and log), logs it, counts it, and makes its span.
Its answer tells where people reach the page, if the operator has said it.

At level `info` only requests that failed or took long are logged: a line costs 30 to 100 µs, and a
whole poll 430 to 740 µs.
"""

import time
import uuid
from collections.abc import Iterable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.engine.tracing import contexts
from service.engine.tracing.contexts import TraceContext
from service.engine.tracing.spans import Span, Tracer
from service.http.telemetry import METHODS, Telemetry

log = structlog.get_logger()

_LONG = 1.0  # seconds
MONITOR_PATHS = ("/livez", "/readyz", "/metrics")  # requested every few seconds, and not logged
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
    if scope["path"] in MONITOR_PATHS:
        return
    is_odd = status is None or status >= 400 or seconds > _LONG
    (log.info if is_odd else log.debug)(
        "request",
        method=scope["method"],
        path=scope["path"][:_LONGEST_PATH],
        status=status,
        milliseconds=round(1000 * seconds, 1),
    )


_HEADER = b"traceparent"


class RequestSpans:
    """A span of each request, under which the tasks are added that it asks for. It stands inside
    `AccessLog`, which names requests, and is added only where spans are sent.
    """

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in MONITOR_PATHS:
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        status: int | None = None

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self._tracer.request(method, read_caller_span(scope["headers"])) as span:
            try:
                with contexts.use_traceparent(_begun(span)):
                    await self._app(scope, receive, seen)
            finally:
                _describe_span(span, method, scope, status)


def read_caller_span(headers: Iterable[tuple[bytes, bytes]]) -> TraceContext | None:
    """The span that the caller names; None if it names none, two, or one in another form."""
    given = [value for name, value in headers if name == _HEADER]
    return contexts.parse_traceparent(given[0].decode("latin-1")) if len(given) == 1 else None


def _begun(span: Span) -> str:
    """The span's traceparent; lines that are logged meanwhile say its trace."""
    traceparent = span.traceparent or ""
    structlog.contextvars.bind_contextvars(trace_id=traceparent[3:35])
    return traceparent


def _describe_span(span: Span, method: str, scope: Scope, status: int | None) -> None:
    """The route and not the path, which contains ids and names of users."""
    route = getattr(scope.get("route"), "path", None)
    name = scope.get("state", {}).get("request_id", "")
    span.tell({"http.request.method": method, "prescore.request_id": name})
    if route is not None:
        span.name(f"{method} {route}")
        span.tell({"http.route": route})
    if status is not None:
        span.tell({"http.response.status_code": status})
        if status >= 500:
            span.fail(str(status))
