"""Thumbnails: files of small pictures, and the only kind of WebP that is accepted and served.

A file has the forms of some pictures, each known by the SHA-256 of its bytes: safetensors, with a
tensor of bytes for each form. Who reads one form reads no other.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from service.contract.errors import InvalidCheckpoint, UnusableDataset
from service.contract.formats import safetensors_header

SIZES: Final = (320, 960)  # pixels of the longer side, at most
MOST_BYTES = 4_000_000  # of a form: 960 x 960 of noise have half of it
UNDECODED = "undecoded"  # metadata: JSON of pictures and reasons

_FRAME = 30  # bytes before the first of its pixels
_KEY_FRAME = b"\x9d\x01\x2a"
_SIDE = (1 << 14) - 1


def name_thumbnail(picture: str, size: int) -> str:
    return f"{picture}/{size}"


def is_thumbnail(content: bytes, size: int) -> bool:
    """Tell whether these bytes are a WebP of pixels alone, with sides up to `size`."""
    if not _FRAME <= len(content) <= MOST_BYTES or (content[:4], content[8:16]) != _BEGINNING:
        return False
    whole, frame = (int.from_bytes(content[at : at + 4], "little") for at in (4, 16))
    if whole != len(content) - 8 or frame + frame % 2 != len(content) - 20:
        return False
    if content[20] & 1 or content[23:26] != _KEY_FRAME:
        return False
    sides = [int.from_bytes(content[at : at + 2], "little") & _SIDE for at in (26, 28)]
    return min(sides) > 0 and max(sides) <= size


_BEGINNING = b"RIFF", b"WEBPVP8 "


def read_thumbnail(path: Path, picture: str, size: int) -> bytes | str:
    """A picture's form, or why there is none. Raises UnusableDataset where the file is damaged."""
    try:
        with path.open("rb") as stream:
            found = safetensors_header.read_safetensors_header(stream, path.stat().st_size)
            reason = _reasons(found.metadata).get(picture)
            if reason is not None:
                return reason
            entry = found.tensors[name_thumbnail(picture, size)]
            stream.seek(found.data_start + entry.start)
            content = stream.read(entry.end - entry.start)
    except (InvalidCheckpoint, KeyError, ValueError):
        content = b""
    if not is_thumbnail(content, size):
        raise UnusableDataset(f"the file of small pictures is damaged: {picture} is not in it")
    return content


def dump_undecoded(undecoded: Mapping[str, str]) -> dict[str, str]:
    """The metadata that `read_thumbnail` reads."""
    return {UNDECODED: json.dumps(undecoded)}


def _reasons(metadata: Mapping[str, str]) -> Mapping[str, str]:
    return dict(json.loads(metadata.get(UNDECODED, "{}")))


class PictureDigests:
    """A file of the SHA-256 of pictures, in their images' order; zeros where there is no picture.
    Only what is asked for is read.
    """

    BYTES = 32
    _NONE = bytes(BYTES)

    def __init__(self, path: Path) -> None:
        self._path = path

    def some(self, start: int, stop: int) -> Sequence[str | None]:
        """Read the digests of images `start` to `stop`, or of as many as there are."""
        with self._path.open("rb") as stream:
            stream.seek(start * self.BYTES)
            read = stream.read((stop - start) * self.BYTES)
        found = (read[at : at + self.BYTES] for at in range(0, len(read), self.BYTES))
        return [None if each == self._NONE else each.hex() for each in found]
