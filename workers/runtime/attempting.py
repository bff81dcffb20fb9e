"""The span of an attempt at a task: a child of the span of the request that asked for it."""

from contextlib import AbstractContextManager

from service.engine.leases import Lease
from service.engine.tracing import contexts
from service.engine.tracing.spans import Attributes, Span, Tracer

OUTCOME = "prescore.outcome"


def span(tracer: Tracer, lease: Lease) -> AbstractContextManager[Span]:
    """Its attributes say what the task is by kind and key; inputs and parameters stay untold."""
    attributes: Attributes = {
        "prescore.task.kind": lease.kind,
        "prescore.task.key": lease.key,
        "prescore.task.attempt": lease.attempt,
        "prescore.queue": lease.queue,
        "prescore.queue.wait_seconds": round(lease.waited, 3),
    }
    return tracer.attempt(f"attempt {lease.kind}", contexts.read(lease.traceparent), attributes)
