"""Exchange of bytes and JSON between a process and its child in the sandbox that stays, through the
memory that both see. The child may answer anything: all of it is judged.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from workers.sandbox.child import InputRefused

SHARED_BYTES = 1 << 26
Perform = Callable[[bytes], tuple[Mapping[str, Any], bytes]]  # what is told, and what is written


class AnsweringChild(Protocol):
    """A child that stays, or what stands for it (`operations.StayingChild`)."""

    memory: memoryview

    @property
    def is_open(self) -> bool: ...

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]: ...

    def close(self) -> None: ...


class UnexpectedAnswer(Exception):
    """The child has answered something else than was asked; the text says what was expected."""


def exchange_bytes(
    child: AnsweringChild, request: Mapping[str, Any], given: bytes, most: int
) -> tuple[Mapping[str, Any], bytearray]:
    """Send a request with bytes; return what the child tells, and at most so many bytes that it has
    written. Raises UnexpectedAnswer, and InputRefused and ChildStopped as `ask` does.
    """
    if len(given) > len(child.memory):
        raise InputRefused(f"{request['do']}: {len(given):,} bytes are too many for one request")
    child.memory[: len(given)] = given
    told = child.ask({**request, "bytes": len(given)})
    size = told.get("bytes")
    if type(size) is not int or not 0 <= size <= most:
        raise UnexpectedAnswer(f"at most {most:,} bytes to {request['do']}")
    found = bytearray(size)
    step = len(child.memory)
    for start in range(0, size, step):
        if start:
            child.ask({"do": "more", "start": start})
        part = min(size - start, step)
        found[start : start + part] = child.memory[:part]
    return told, found


def exchange_json(child: AnsweringChild, do: str, given: object, most: int) -> object:
    """Send JSON; return the JSON of the answer, as `exchange_bytes` does."""
    _, found = exchange_bytes(child, {"do": do}, json.dumps(given).encode(), most)
    try:
        return json.loads(bytes(found))
    except (ValueError, RecursionError):
        raise UnexpectedAnswer("JSON") from None


class ExchangeServer:
    """The child's side. `performs`: by name, all that it may be asked to do."""

    def __init__(self, memory: memoryview, performs: Mapping[str, Perform]) -> None:
        self._memory, self._performs = memory, performs
        self._written = b""

    def answer(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if request["do"] == "more":
            return self._give({}, request["start"])
        given = bytes(self._memory[: request["bytes"]])
        try:
            told, self._written = self._performs[request["do"]](given)
        except (InputRefused, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001  tokenizers panic by an error that is no Exception
            raise InputRefused(f"{request['do']}: {error!r}") from None
        return self._give({**told, "bytes": len(self._written)}, 0)

    def _give(self, told: Mapping[str, Any], start: int) -> Mapping[str, Any]:
        part = self._written[start : start + len(self._memory)]
        self._memory[: len(part)] = part
        return told
