"""The span of an attempt at a work: a child of the span of the request that asked for it."""

from contextlib import AbstractContextManager

from service.works.leases import Lease
from service.works.tracing import contexts
from service.works.tracing.spans import Attributes, Span, Tracer

OUTCOME = "prescore.outcome"


def span(tracer: Tracer, lease: Lease) -> AbstractContextManager[Span]:
    """Its attributes say what the work is by kind and key; inputs and parameters stay untold."""
    attributes: Attributes = {
        "prescore.work.kind": lease.kind,
        "prescore.work.key": lease.key,
        "prescore.work.attempt": lease.attempt,
        "prescore.queue": lease.queue,
        "prescore.queue.wait_seconds": round(lease.waited, 3),
    }
    return tracer.attempt(f"attempt {lease.kind}", contexts.read(lease.traceparent), attributes)
