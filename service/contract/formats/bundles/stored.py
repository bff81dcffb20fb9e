"""What the service stores of a dataset's captions: the bundle, or captions.jsonl alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from service.contract.formats import bundles
from service.contract.formats.bundles import CAPTIONS, Item, plain_tar

_CHUNK = 1 << 18


@contextmanager
def open_captions(path: Path) -> Iterator[IO[bytes]]:
    """Open captions.jsonl of a bundle, or the file itself if it is one."""
    if _is_alone(path):
        with path.open("rb") as stream:
            yield stream
        return
    with bundles.open_member(path, CAPTIONS) as stream:
        yield stream


def captions_of(path: Path) -> Iterator[bytes]:
    """The bytes of captions.jsonl in chunks."""
    with open_captions(path) as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def read_split(path: Path, split: str) -> list[Item]:
    """All images of one split; InvalidBundle names the splits that exist if there are none."""
    with open_captions(path) as stream:
        return bundles.split_in(bundles.items_in(stream, bundles.names_in_memory()), split)


def _is_alone(path: Path) -> bool:
    """The header of a tar has zero bytes, at least where it is filled up; JSON has none."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return b"\0" not in stream.read(plain_tar.BLOCK)
