"""Bounds on what a service may make this process read, and the unpacking of a body within them.

A service, or what stands in its place, may be hostile: an answer that never ends, or that unpacks
to a thousand times its size, is refused when the bound is reached and not after it was read.
"""

import time
import zlib
from collections.abc import Iterator

import httpx

ANSWER_BYTES = 64 << 20  # of an answer that is read as a whole; a page has at most 10 MB
ERROR_BYTES = 1 << 20  # of a refusal; a longer one is told without its text
PICTURE_BYTES = 4 << 20  # of a small form of a picture: 960 x 960 of noise have a sixth of it
DOWNLOAD_BYTES = 4 << 30  # to a file; captions of two million images take 1 GB
EVENT_BYTES = 8 << 20  # of an event, and of a line of it
CONTAINERS = 160_000  # objects and lists in an answer: parsed, each takes a kilobyte
COMMAS = 1_500_000  # in an answer: parsed, a value takes 100 bytes
PAGE_ITEMS = 10_000
LIST_ITEMS = 5_000_000
PAGES = 100_000  # of one list
POLLS = 1_000_000  # of one run: a run ends after seven days at the latest
ANSWER_SECONDS = 600.0  # for the body of an answer that is read as a whole
RETRY_SECONDS = 600.0  # the longest pause that a service may ask for
POLL_SECONDS = 60.0  # the longest pause between two polls

_PIECE = 1 << 16  # as long as the pieces in which a body is received


class TooMuch(Exception):
    """The text says what was expected and found."""


class Body:
    """A body that is read as a whole."""

    def __init__(self) -> None:
        self._until = time.monotonic() + ANSWER_SECONDS
        self._found = bytearray()

    def add(self, piece: bytes) -> None:
        self._found += piece
        if time.monotonic() > self._until:
            raise TooMuch(f"expected a whole answer within {ANSWER_SECONDS:g} s, found a part")

    @property
    def content(self) -> bytes:
        return bytes(self._found)


class Unpacking:
    """A body in pieces, unpacked; TooMuch where it is longer than `most` bytes."""

    def __init__(self, response: httpx.Response, most: float) -> None:
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in ("identity", "", "gzip", "x-gzip"):  # only these were asked for
            raise TooMuch(f"expected an answer as it is, or gzip, found {coding!r:.60}")
        self._unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS) if "gzip" in coding else None
        self._most = most
        self._size = 0

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """What a chunk of the body as it was sent holds."""
        if self._unpacker is None:
            yield self._counted(chunk)
            return
        rest = chunk
        while rest and not self._unpacker.eof:
            try:
                piece = self._unpacker.decompress(rest, _PIECE)
            except zlib.error as error:
                raise TooMuch(f"expected gzip, found {error}") from None
            yield self._counted(piece)
            rest = self._unpacker.unconsumed_tail

    def rest(self) -> Iterator[bytes]:
        """What is left at the end of the body."""
        if self._unpacker is not None:
            yield self._counted(self._unpacker.flush(_PIECE))

    def _counted(self, piece: bytes) -> bytes:
        self._size += len(piece)
        if self._size > self._most:
            raise TooMuch(f"expected an answer of at most {self._most} bytes, found a longer one")
        return piece


def check_structure(content: bytes) -> None:
    """Raise for JSON that needs much more memory when it is parsed than its length tells."""
    containers = content.count(b"{") + content.count(b"[")
    if containers > CONTAINERS or content.count(b",") > COMMAS:
        raise TooMuch(
            f"expected JSON of at most {CONTAINERS} objects and lists and {COMMAS} commas, "
            f"found {containers} and {content.count(b',')}"
        )
