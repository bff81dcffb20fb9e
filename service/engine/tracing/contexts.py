"""Trace contexts: the span of a request, as W3C's header `traceparent` has it.

A context comes from anybody: only version 00 is read, to the letter; `tracestate`, which could hold
anything, is not kept.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

LENGTH = 55  # characters of a traceparent, which tasks keep
_FORM = re.compile("00-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})")

_current: ContextVar[str | None] = ContextVar("traceparent", default=None)


@dataclass(frozen=True)
class TraceContext:
    trace: int
    span: int
    flags: int

    def __str__(self) -> str:
        return f"00-{self.trace:032x}-{self.span:016x}-{self.flags:02x}"


def parse_traceparent(text: str | None) -> TraceContext | None:
    """The context that a header or a row says; None if it says none in this form."""
    if text is None or len(text) != LENGTH:
        return None
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    context = TraceContext(*(int(found[name], 16) for name in ("trace", "span", "flags")))
    return context if context.trace and context.span else None


def get_traceparent() -> str | None:
    """The traceparent of the request that is being answered; None where none is traced."""
    return _current.get()


@contextmanager
def use_traceparent(traceparent: str) -> Iterator[None]:
    """Inside, tasks are added for the span with this traceparent."""
    token = _current.set(traceparent)
    try:
        yield
    finally:
        _current.reset(token)
