"""A file of captions, [[place in the split, caption], …], read from any of its pairs on."""

import json
import os
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.contract.errors import BlobDamaged

_PAIR = re.compile(rb'\s*\[\s*([0-9]+)\s*,\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*\]\s*([,\]])', re.DOTALL)
_EMPTY = re.compile(rb"\s*\[\s*\]\s*")
_CHUNK = 1 << 18
_LONGEST = 1 << 20  # bytes of a pair; limits.CAPTION characters take 120,000 at most


@dataclass(frozen=True, slots=True)
class Pair:
    place: int
    caption: str
    following: int | None  # the byte at which the next pair can be read; None after the last


def read(path: Path, start: int = 0) -> Iterator[Pair]:
    """The pairs from the byte `start` on; BlobDamaged where there is none that can be read."""
    for found, _, end in _found(path, start):
        is_last = found[3] == b"]"
        yield Pair(int(found[1]), json.loads(found[2]), None if is_last else end)


@dataclass(frozen=True)
class Index:
    """Where the pairs of a file are, so that single ones are read without the others.

    `starts`: the byte at which each begins, and at last the size of the file.
    """

    path: Path
    places: Sequence[int]  # in the split
    starts: Sequence[int]

    def read(self, wanted: Sequence[int]) -> list[Pair]:
        """The pairs at these places of the file."""
        with self.path.open("rb") as stream:
            return [self._read(stream.fileno(), at) for at in wanted]

    def _read(self, file: int, at: int) -> Pair:
        start, end = self.starts[at], self.starts[at + 1]
        found = _PAIR.match(os.pread(file, end - start, start))
        assert found is not None, f"{self.path.name} has changed"
        is_last = at + 1 == len(self.places)
        return Pair(self.places[at], json.loads(found[2]), None if is_last else end)


def index(path: Path) -> Index:
    """Look through a file; no caption is decoded."""
    places, starts = array("q"), array("q")
    for found, start, _ in _found(path, 0):
        places.append(int(found[1]))
        starts.append(start)
    starts.append(path.stat().st_size)
    return Index(path, places, starts)


def _found(path: Path, start: int) -> Iterator[tuple[re.Match[bytes], int, int]]:
    """Each pair from a byte on, with the bytes of its start and of its end."""
    with path.open("rb") as stream:
        stream.seek(start)
        data = stream.read(_CHUNK)
        if start == 0 and _EMPTY.fullmatch(data):
            return
        at = data.find(b"[") + 1 if start == 0 else 0
        while True:
            found = _PAIR.match(data, at)
            if found is None:
                more = stream.read(_CHUNK)
                if not more or len(data) - at > _LONGEST:
                    raise BlobDamaged(
                        path.name,
                        f"expected captions of at most {_LONGEST:,} bytes in the stored file, "
                        f"found none at byte {start + at}: they cannot be shown",
                    )
                start += at
                data, at = data[at:] + more, 0
                continue
            yield found, start + at, start + found.end()
            at = found.end()
            if found[3] == b"]":
                return
