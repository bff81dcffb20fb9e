"""Spans of requests and of attempts. `OFF` tells nothing, and costs nothing.

Attributes are names, keys and numbers of ours, and codes of errors; never an error's text, a label,
a caption or a path, which hold what users wrote.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from service.engine.tracing.contexts import TraceContext

Attributes = Mapping[str, str | int | float]


class Span:
    """A span that is not sent; those that are, are made by `span_export`."""

    traceparent: str | None = None

    def name(self, name: str) -> None: ...

    def tell(self, attributes: Attributes) -> None: ...

    def fail(self, code: str) -> None:
        """Mark it as an error with this code."""


class Tracer:
    """A tracer that sends nothing."""

    is_on = False

    def request(self, name: str, parent: TraceContext | None) -> AbstractContextManager[Span]:  # noqa: ARG002
        """A span of a request, of which `parent` is the caller's, if any is told."""
        return nullcontext(UNTOLD)

    def attempt(
        self,
        name: str,  # noqa: ARG002
        parent: TraceContext | None,  # noqa: ARG002
        attributes: Attributes,  # noqa: ARG002
    ) -> AbstractContextManager[Span]:
        """A span of an attempt at a task; an exception that leaves it marks it as an error."""
        return nullcontext(UNTOLD)

    def close(self) -> None:
        """Send what is not sent yet, for two seconds at most."""


UNTOLD = Span()
OFF = Tracer()
