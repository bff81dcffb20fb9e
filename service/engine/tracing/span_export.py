"""Spans by OpenTelemetry's SDK. Imported by nobody but `tracers`, and by tests."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version

from opentelemetry import trace
from opentelemetry.context import Context as Around
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

from service.engine.tracing.contexts import TraceContext
from service.engine.tracing.spans import Attributes, Span, Tracer

_CLOSING_SECONDS = 2.0  # a piece ends within ten seconds


def export_to_collector(role: str, environment: Mapping[str, str]) -> Tracer:
    """Sends spans to the collector that the environment names, in the background."""
    own = {"service.version": version("prescore")}
    named = "service.name=" in environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if not named and not environment.get("OTEL_SERVICE_NAME"):
        own["service.name"] = f"prescore-{role}"
    return build_tracer(BatchSpanProcessor(OTLPSpanExporter()), own)


def build_tracer(processor: SpanProcessor, resource: Mapping[str, str]) -> Tracer:
    # Not at exit: without a collector, that may wait for longer than a piece may take to end.
    provider = TracerProvider(resource=Resource.create(dict(resource)), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return _ExportingTracer(provider)


class _ExportedSpan(Span):
    def __init__(self, span: trace.Span) -> None:
        self._span = span
        found = span.get_span_context()
        context = TraceContext(found.trace_id, found.span_id, int(found.trace_flags))
        self.traceparent = str(context)

    def name(self, name: str) -> None:
        self._span.update_name(name)

    def tell(self, attributes: Attributes) -> None:
        self._span.set_attributes(attributes)

    def fail(self, code: str) -> None:
        self._span.set_attribute("error.type", code)
        self._span.set_status(Status(StatusCode.ERROR, code))


class _ExportingTracer(Tracer):
    is_on = True

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("prescore", version("prescore"))

    def request(self, name: str, parent: TraceContext | None) -> AbstractContextManager[Span]:
        return self._span(name, parent, SpanKind.SERVER, {})

    def attempt(
        self, name: str, parent: TraceContext | None, attributes: Attributes
    ) -> AbstractContextManager[Span]:
        return self._span(name, parent, SpanKind.CONSUMER, attributes)

    @contextmanager
    def _span(
        self, name: str, parent: TraceContext | None, kind: SpanKind, attributes: Attributes
    ) -> Iterator[Span]:
        around = _around(parent)
        span = self._tracer.start_span(name, around, kind, attributes)
        told = _ExportedSpan(span)
        try:
            yield told
        except BaseException as error:
            told.fail(type(error).__name__)  # not its text, which may hold what users wrote
            raise
        finally:
            span.end()

    def close(self) -> None:
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(_CLOSING_SECONDS)


def _around(parent: TraceContext | None) -> Around:
    """Never what this thread happens to be in: spans of attempts are children of requests'."""
    if parent is None:
        return Around()
    given = trace.SpanContext(
        parent.trace, parent.span, is_remote=True, trace_flags=trace.TraceFlags(parent.flags)
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(given), Around())
