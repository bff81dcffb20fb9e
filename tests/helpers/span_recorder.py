"""Spans that are kept in this process, for tests of what is told of requests and attempts."""

from collections.abc import Callable
from typing import Any

import pytest

from service.engine.tracing.spans import Tracer


def keeping() -> tuple[Tracer, Callable[[], list[Any]]]:
    """A tracer, and a function that gives the spans that have ended, in their order. Skips where
    the extra `otel` is not installed.
    """
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="no extra otel here")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from service.engine.tracing import span_export

    exporter = InMemorySpanExporter()
    tracer = span_export.build_tracer(SimpleSpanProcessor(exporter), {"service.name": "tests"})
    return tracer, lambda: list(exporter.get_finished_spans())
