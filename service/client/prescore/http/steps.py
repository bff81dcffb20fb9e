"""What a request needs from outside, as steps: the same code runs with and without asyncio.

Code that asks the service is a generator of steps. It is given each step's result, or its error is
raised in it; what it yields as an `Item` is for the caller. `transport` performs steps one after
the other, `async_transport` awaits them.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from prescore.errors import InvalidArgument
from prescore.http import bounds

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Callable[[], Iterable[bytes]] = b""  # a stream is built again for every attempt
    hold: float = 0.0  # seconds that the service may wait before it answers


@dataclass(frozen=True)
class Send:
    """One attempt; its result is the whole answer."""

    request: Request
    most: int = bounds.ANSWER_BYTES


@dataclass(frozen=True)
class Open:
    """One attempt; its result is the answer without its body. An open answer is closed before."""

    request: Request
    most: float  # bytes


@dataclass(frozen=True)
class Read:
    """The next bytes of the open answer's body; None at its end."""


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class Do:
    """Work of this machine that takes long, such as a digest; a thread does it under asyncio."""

    work: Callable[[], Any]


@dataclass(frozen=True)
class Item:
    """Something for the caller."""

    value: Any


@dataclass(frozen=True)
class End:
    """The result of the generator itself."""

    value: Any


Step = Send | Open | Read | Sleep | Do | Item
Steps = Generator[Step, Any, T]


class Course:
    """Where a generator of steps stands."""

    def __init__(self, steps: Steps[Any]) -> None:
        self._steps = steps
        self._result: Any = None
        self._error: Exception | None = None

    def next(self) -> Step | End:
        result, self._result = self._result, None
        error, self._error = self._error, None
        try:
            return self._steps.send(result) if error is None else self._steps.throw(error)
        except StopIteration as end:
            return End(end.value)

    def succeeded(self, result: object) -> None:
        self._result = result

    def failed(self, error: Exception) -> None:
        self._error = error

    def close(self) -> None:
        self._steps.close()


def segment(text: str) -> str:
    """One segment of a URL's path, quoted so that no text can lead to another path."""
    if text in ("", ".", ".."):
        raise InvalidArgument(f"expected a name or an id, found {text!r}")
    return quote(text, safe="@:")
