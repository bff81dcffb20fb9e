"""A file's digest, and its bytes as the body of a request."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prescore import foreign
from prescore.errors import InvalidArgument

CHUNK_BYTES = 1 << 20
COLUMNS = "columns, a safetensors file that prescore.Recorder wrote"
HEADER_BYTES = 100_000_000  # of a safetensors file, at most
_MARK = "prescore_columns"  # metadata that columns have, and nothing else


@dataclass(frozen=True)
class Body:
    """A request's body: its size, and its bytes, made again for every attempt; from an offset on
    where one is given.
    """

    size: int
    chunks: Callable[..., Iterator[bytes]]


def compute_digest(body: Body) -> str:
    digest = hashlib.sha256()
    for chunk in body.chunks():
        digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def file_body(path: Path) -> Body:
    with translate_read_errors(path):
        size = path.stat().st_size
    return Body(size, lambda start=0: read_exactly(path, size, start))


def read_exactly(path: Path, size: int, start: int = 0) -> Iterator[bytes]:
    """The file's bytes from `start` on, in chunks; raises if they are not `size` in all, which
    Content-Length promised.
    """
    with translate_read_errors(path), path.open("rb") as stream:
        stream.seek(start)
        left = size - start
        while left and (chunk := stream.read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk
        if left or stream.read(1):
            raise InvalidArgument(f"{path} changed while it was read; is it still being written?")


def check_format(path: Path, wanted: str) -> None:
    """Raise if the file is known to have another format than the wanted one."""
    with translate_read_errors(path):
        refusal = foreign.refusal(foreign.of_path(path), wanted)
    if refusal is not None:
        raise InvalidArgument(f"{path}: {refusal}")


def check_checkpoint(path: Path) -> None:
    """Raise if the file is known to be no checkpoint."""
    check_format(path, foreign.CHECKPOINT)
    if _has_columns_mark(path):
        raise InvalidArgument(
            f"{path}: expected {foreign.CHECKPOINT}, found columns: submit them by `--columns`, "
            "upload them by `upload_columns`"
        )


def check_columns(path: Path) -> None:
    """Raise if the file is known to be no file of columns."""
    with translate_read_errors(path):
        format_ = foreign.of_path(path)
    if format_ is not None and format_.serves != foreign.CHECKPOINT:
        raise InvalidArgument(f"{path}: {foreign.refusal(format_, COLUMNS)}")
    if _has_columns_mark(path) is False:
        raise InvalidArgument(
            f"{path}: expected {COLUMNS}, found no `{_MARK}` in its metadata: a checkpoint is "
            "submitted without `--columns`"
        )


def _has_columns_mark(path: Path) -> bool | None:
    """Check that a safetensors file says that it has columns; None: its header is unreadable, of
    which the service tells.
    """
    with translate_read_errors(path), path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        text = stream.read(size) if size <= HEADER_BYTES else b""
    try:
        return _MARK in json.loads(text).get("__metadata__", {})
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None


@contextmanager
def translate_read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}") from None
