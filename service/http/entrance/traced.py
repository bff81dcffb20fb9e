"""A span of each request, under which the tasks are added that it asks for."""

from collections.abc import Iterable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.engine.tracing import contexts
from service.engine.tracing.contexts import TraceContext
from service.engine.tracing.spans import Span, Tracer
from service.http.entrance.access_log import OF_MONITORS
from service.http.telemetry import METHODS

_HEADER = b"traceparent"


class Traced:
    """To stand inside `AccessLog`, which names requests; it is added only where spans are sent."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OF_MONITORS:
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        status: int | None = None

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self._tracer.request(method, caller(scope["headers"])) as span:
            try:
                with contexts.use_traceparent(_begun(span)):
                    await self._app(scope, receive, seen)
            finally:
                _tell(span, method, scope, status)


def caller(headers: Iterable[tuple[bytes, bytes]]) -> TraceContext | None:
    """The span that the caller names; None if it names none, two, or one in another form."""
    given = [value for name, value in headers if name == _HEADER]
    return contexts.parse_traceparent(given[0].decode("latin-1")) if len(given) == 1 else None


def _begun(span: Span) -> str:
    """The span's traceparent; lines that are logged meanwhile say its trace."""
    traceparent = span.traceparent or ""
    structlog.contextvars.bind_contextvars(trace_id=traceparent[3:35])
    return traceparent


def _tell(span: Span, method: str, scope: Scope, status: int | None) -> None:
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
