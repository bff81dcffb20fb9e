"""A file's digest, and its bytes as the body of a request."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prescore.errors import InvalidArgument
from prescore.files import foreign

CHUNK_BYTES = 1 << 20
COLUMNS = "columns, a safetensors file that prescore.Recorder wrote"


@dataclass(frozen=True)
class Body:
    """A request's body: its size, and its bytes, made again for every attempt."""

    size: int
    chunks: Callable[[], Iterator[bytes]]


def digest_of(path: Path) -> str:
    with readable(path), path.open("rb") as stream:
        return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()


def digest_of_body(body: Body) -> str:
    found = hashlib.sha256()
    for chunk in body.chunks():
        found.update(chunk)
    return f"sha256:{found.hexdigest()}"


def file_body(path: Path) -> Body:
    with readable(path):
        size = path.stat().st_size
    return Body(size, lambda: read_exactly(path, size))


def read_exactly(path: Path, size: int) -> Iterator[bytes]:
    """The file's bytes in chunks; raises if they are not `size`, which Content-Length promised."""
    with readable(path), path.open("rb") as stream:
        left = size
        while left and (chunk := stream.read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk
        if left or stream.read(1):
            raise InvalidArgument(f"{path} changed while it was read; is it still being written?")


def check_format(path: Path, wanted: str) -> None:
    """Raise for what is known to be another format than the one that is wanted."""
    with readable(path):
        refusal = foreign.refusal(foreign.of_path(path), wanted)
    if refusal is not None:
        raise InvalidArgument(f"{path}: {refusal}")


def check_columns(path: Path) -> None:
    """Raise for what is known to be no safetensors file."""
    with readable(path):
        found = foreign.of_path(path)
    if found is not None and found.serves != foreign.CHECKPOINT:
        raise InvalidArgument(f"{path}: {foreign.refusal(found, COLUMNS)}")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}") from None
