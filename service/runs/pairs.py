"""A file of captions, [[place in the split, caption], …], read from any of its pairs on."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PAIR = re.compile(rb'\s*\[\s*([0-9]+)\s*,\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*\]\s*([,\]])', re.DOTALL)
_EMPTY = re.compile(rb"\s*\[\s*\]\s*")
_CHUNK = 1 << 18
_LONGEST = 1 << 20  # bytes of a pair


@dataclass(frozen=True, slots=True)
class Pair:
    place: int
    caption: str
    following: int | None  # the byte at which the next pair can be read; None after the last


def read(path: Path, start: int = 0) -> Iterator[Pair]:
    """The pairs from the byte `start` on; ValueError where there is no pair."""
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
                    raise ValueError(f"no caption at byte {start + at} of {path.name}")
                start += at
                data, at = data[at:] + more, 0
                continue
            at = found.end()
            is_last = found[3] == b"]"
            yield Pair(int(found[1]), json.loads(found[2]), None if is_last else start + at)
            if is_last:
                return
