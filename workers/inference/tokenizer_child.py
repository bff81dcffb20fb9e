"""Tokenizer of a stranger, in a child in the sandbox: a library of Rust and C builds it of a file,
and was not written for hostile ones.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from service.contract import limits
from service.contract.errors import InvalidPackage, SandboxUnavailable, UnusableCheckpoint
from service.contract.settings import Sandbox
from service.kernel.confinement import list_skipped_mechanisms
from service.kernel.process_limits import ChildLimits
from workers.inference import pieces
from workers.sandbox import exchange, operations
from workers.sandbox.child import Handler, InputRefused
from workers.sandbox.exchange import AnsweringChild, ExchangeServer, Perform, UnexpectedAnswer
from workers.sandbox.operations import StayingChild

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Found = TypeVar("Found")

_OPERATION = "workers.inference.tokenizer_child:serve_tokenizer"
_LIMITS = ChildLimits(seconds=60.0, cpu_seconds=None, memory=2_000_000_000)
_TEXTS = 500  # of one request
_MOST_PIECES = 1 << 24  # bytes of an answer
_MOST_TEXT = 12 * limits.CAPTION + 4  # bytes of a caption: its characters may be two \\uXXXX each
_PAIR = 2


class PieceOffsets(NamedTuple):
    """Pieces of a text, as tokenizers tell them."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class TokenizerChild:
    """A tokenizer in the sandbox, with the methods of `tokenizers.Tokenizer` that are called; all
    that it answers is judged. `start` starts its process: at once, and again where the last one has
    ended. `of` names in messages the thing that cannot be done.
    """

    def __init__(self, start: Callable[[], AnsweringChild], of: str = "the tokenizer") -> None:
        self._start, self._of = start, of
        self._child = self._told(start)

    def encode_batch(
        self,
        texts: Sequence[str],
        /,
        *,
        add_special_tokens: bool,  # noqa: ARG002  as tokenizers have it
    ) -> list[PieceOffsets]:
        found: list[PieceOffsets] = []
        for start in range(0, len(texts), _TEXTS):
            part = list(texts[start : start + _TEXTS])
            found += self._told(lambda part=part: self._encode(part))  # type: ignore[misc]
        return found

    def decode_batch(
        self, sequences: Sequence[Sequence[int]], /, *, skip_special_tokens: bool
    ) -> list[str]:
        found: list[str] = []
        for start in range(0, len(sequences), _TEXTS):
            part = [list(map(int, ids)) for ids in sequences[start : start + _TEXTS]]
            asked = {"ids": part, "skip": skip_special_tokens}
            found += self._told(lambda asked=asked: self._decode(asked))  # type: ignore[misc]
        return found

    def close(self) -> None:
        self._child.close()

    def ask(self, do: str, given: bytes, most: int) -> tuple[Mapping[str, Any], bytearray]:
        """Have the child do something. Raises UnusableCheckpoint where it gives no right answer."""
        return self._told(lambda: exchange.exchange_bytes(self._running(), {"do": do}, given, most))

    def _running(self) -> AnsweringChild:
        if not self._child.is_open:
            self._child = self._start()
        return self._child

    def _encode(self, texts: Sequence[str]) -> list[PieceOffsets]:
        found = exchange.exchange_json(self._running(), "encode", texts, _MOST_PIECES)
        if not isinstance(found, list) or len(found) != len(texts):
            raise UnexpectedAnswer("pieces of each text")
        return [_judge_pieces(each) for each in found]

    def _decode(self, asked: Mapping[str, Any]) -> list[str]:
        most = 2 + _MOST_TEXT * len(asked["ids"])
        texts = exchange.exchange_json(self._running(), "decode", asked, most)
        found = [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []
        if len(found) != len(asked["ids"]):
            raise UnexpectedAnswer("a text of each caption")
        return found

    def _told(self, perform: Callable[[], Found]) -> Found:
        """Give the child's faults the errors of a checkpoint."""
        try:
            return perform()
        except operations.ConfinementUnavailable as unavailable:
            raise SandboxUnavailable(
                f"{unavailable}; {self._of} runs in a sandbox alone (PRESCORE_SANDBOX)"
            ) from None
        except UnexpectedAnswer as error:
            raise UnusableCheckpoint(
                f"the process with {self._of} answered something else: expected {error}"
            ) from None
        except operations.ChildStopped as error:
            raise UnusableCheckpoint(f"{self._of}: the process {error}") from None
        except InputRefused as error:
            raise UnusableCheckpoint(f"{self._of}: {error}") from None


def open_tokenizer(text: str, name: str, size: int, sandbox: Sandbox) -> TokenizerChild:
    """Open a tokenizer of a file's text in the sandbox, where a text is tried. Raises
    InvalidPackage, which names the file, where it is none or has pieces beyond `size`.
    """

    def start() -> AnsweringChild:
        child = StayingChild(
            _OPERATION,
            [],
            shared=exchange.SHARED_BYTES,
            limits=_LIMITS,
            without=list_skipped_mechanisms(sandbox),
        )
        try:
            request = {"do": "open", "name": name, "size": size}
            exchange.exchange_bytes(child, request, text.encode(), 0)
        except BaseException:
            child.close()
            raise
        return child

    try:
        return TokenizerChild(start)
    except UnusableCheckpoint as error:
        raise InvalidPackage(error.detail, pointer=f"/{name}") from None


def _judge_pieces(told: object) -> PieceOffsets:
    match told:
        case [list(ids), list(offsets)] if len(ids) == len(offsets):
            pairs = [tuple(each) if isinstance(each, list) else () for each in offsets]
            numbers = [*ids, *(number for pair in pairs for number in pair)]
            are_numbers = all(type(each) is int and 0 <= each < 1 << 31 for each in numbers)
            if are_numbers and all(len(pair) == _PAIR for pair in pairs):
                return PieceOffsets(ids, pairs)
    raise UnexpectedAnswer("ids of pieces and where they stand")


_SAMPLE = "a man rides a horse"


def serve_tokenizer(
    inputs: Sequence[Path],  # noqa: ARG001  of an opener
    parameters: Mapping[str, Any],  # noqa: ARG001
    memory: memoryview,
) -> tuple[Mapping[str, Any], Handler]:
    """An Opener of the sandbox. The first request opens a tokenizer, whose text it gives."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the sandbox has no threads
    opened: dict[str, Perform] = {}
    server = ExchangeServer(memory, opened)

    def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
        if request["do"] == "open":
            opened["open"] = partial(_open, opened, request["name"], request["size"])
        return server.answer(request)

    return {}, answer


def _open(
    opened: dict[str, Perform], name: str, size: int, text: bytes
) -> tuple[Mapping[str, Any], bytes]:
    try:
        tokenizer = pieces.parse_tokenizer(text.decode(), name, size)
    except InvalidPackage as error:
        raise InputRefused(error.detail) from None
    (found,) = tokenizer.encode_batch([_SAMPLE], add_special_tokens=False)
    tokenizer.decode(found.ids, skip_special_tokens=True)
    opened |= make_performs(tokenizer)
    return {}, b""


def make_performs(tokenizer: "Tokenizer") -> dict[str, Perform]:
    """The child's side of `encode` and `decode`."""

    def encode(given: bytes) -> tuple[Mapping[str, Any], bytes]:
        found = tokenizer.encode_batch(json.loads(given), add_special_tokens=False)
        return {}, json.dumps([(each.ids, each.offsets) for each in found]).encode()

    def decode(given: bytes) -> tuple[Mapping[str, Any], bytes]:
        asked = json.loads(given)
        texts = tokenizer.decode_batch(asked["ids"], skip_special_tokens=asked["skip"])
        return {}, json.dumps(texts).encode()

    return {"encode": encode, "decode": decode}
