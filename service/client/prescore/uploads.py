"""Files on their way to the service: raw, streamed, sent again from the start where need be."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prescore.errors import InvalidArgument, Refused
from prescore.transport import Request, Transport

CHUNK_BYTES = 1 << 20
STORE_SECONDS = 120.0  # the service may check, sync and record before it answers

Progress = Callable[[int, int], None]  # bytes sent of bytes in all; an attempt starts from 0


@dataclass(frozen=True)
class Body:
    """Bytes whose number is known beforehand, and that can be had again for every attempt."""

    size: int
    chunks: Callable[[], Iterator[bytes]]


def digest_of(path: Path) -> str:
    with readable(path), path.open("rb") as stream:
        return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()


def file_body(path: Path) -> Body:
    with readable(path):
        size = path.stat().st_size
    return Body(size, lambda: read_exactly(path, size))


def read_exactly(path: Path, size: int) -> Iterator[bytes]:
    """Their number was promised to the service; a file that somebody writes to is told."""
    with readable(path), path.open("rb") as stream:
        left = size
        while left and (chunk := stream.read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk
        if left or stream.read(1):
            raise InvalidArgument(f"{path} changed while it was read; is it still being written?")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}") from None


def put(place: str, body: Body, content_type: str, progress: Progress | None) -> Request:
    return Request(
        "PUT",
        place,
        headers={"Content-Type": content_type, "Content-Length": str(body.size)},
        body=lambda: _counted(body, progress),
        hold=STORE_SECONDS,
    )


def store_checkpoint(transport: Transport, path: Path, progress: Progress | None) -> str:
    """The file's digest; only bytes that the service does not have are sent.

    It is asked again before every attempt: an upload whose answer was lost is complete.
    """
    digest = digest_of(path)
    place = f"/v1/checkpoints/{digest}"
    upload = put(place, file_body(path), "application/octet-stream", progress)

    def attempt() -> None:
        if not is_there(transport, place):
            transport.once(upload)

    transport.persist(attempt)
    return digest


def is_there(transport: Transport, place: str) -> bool:
    try:
        transport.once(Request("HEAD", place))
    except Refused as error:
        if error.status == 404:
            return False
        raise
    return True


def _counted(body: Body, progress: Progress | None) -> Iterator[bytes]:
    report = progress or _silent
    sent = 0
    report(sent, body.size)
    for chunk in body.chunks():
        yield chunk
        sent += len(chunk)
        report(sent, body.size)


def _silent(done: int, total: int) -> None:
    pass
