"""Request bodies in chunks, and uploads into the object store: hashed while they are received, and
judged as soon as what can be judged is there.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any, Protocol

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.contract import limits
from service.contract.errors import BodyTooLarge, DigestMismatch, InvalidRequest
from service.engine.blobs import Blobs, BlobUpload, WholeUpload
from service.http.entrance.metering import meter_of
from service.stored import judges
from service.stored.judges import Facts

_BUFFER = 1 << 22  # bytes per write; each write runs in a thread, to keep the event loop free
_BEGINNING = 512  # bytes that tell how many are needed
_WRITERS = asyncio.Semaphore(2)  # more would not hash faster, and would delay other requests


async def chunks(request: Request, max_bytes: int) -> AsyncIterator[bytes]:
    """The body in chunks; raises if it is longer than `max_bytes` or than its Content-Length."""
    announced = request.headers.get("content-length")
    meter = meter_of(request)
    max_bytes = max_bytes if meter.most is None else min(max_bytes, meter.most)
    if announced is not None and int(announced) > max_bytes:
        raise BodyTooLarge(f"the body has {announced} bytes, at most {max_bytes} are accepted")
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            meter.received = size
            if size > max_bytes:
                raise BodyTooLarge(f"the body has more than {max_bytes} bytes")
            yield chunk
    except ClientDisconnect:
        raise InvalidRequest("the connection was cut before the body ended") from None
    if announced is not None and size != int(announced):
        raise InvalidRequest(f"announced {announced} bytes, received {size}")


@dataclass(frozen=True)
class Early:
    """What judges look at before the rest of a body comes: the question, and how many bytes have to
    be there, by the first ones.
    """

    question: str
    needed: Callable[[bytes], int]


class Ask(Protocol):
    """Asks judges about a whole file."""

    def __call__(self, question: str, /, **asked: object) -> Awaitable[Facts]: ...


@asynccontextmanager
async def receive(
    request: Request, blobs: Blobs, early: Early
) -> AsyncIterator[tuple[BlobUpload, Facts]]:
    """Write the whole body to an upload, which the caller commits, and judge its beginning."""
    announced = request.headers.get("content-length")
    length = None if announced is None else int(announced)
    with blobs.upload() as upload:
        buffer = bytearray()
        facts: Facts | None = None
        beginning = b""
        async for chunk in chunks(request, limits.UPLOAD_BYTES):
            buffer += chunk
            if facts is None:
                if upload.size == 0:
                    beginning = bytes(buffer[:_BEGINNING])
                if upload.size + len(buffer) >= early.needed(beginning):
                    await _emptied(buffer, upload.write)
                    await asyncio.to_thread(upload.flush)
                    facts = await judged_early(upload, early, length)
                    if facts == judges.NOT_YET:
                        length = None  # judged again when all of it is there
            if len(buffer) >= _BUFFER:
                await _emptied(buffer, upload.write)
        await _emptied(buffer, upload.write)
        await asyncio.to_thread(upload.flush)
        if facts is None or length is None:
            facts = await judged_early(upload, early, upload.size)
        yield upload, facts


async def check_again(request: Request, digest: str) -> None:
    """Read the body of what is stored already, keep nothing, and refuse it if it is another one."""
    body = hashlib.sha256()
    buffer = bytearray()
    async for chunk in chunks(request, limits.UPLOAD_BYTES):
        buffer += chunk
        if len(buffer) >= _BUFFER:
            await _emptied(buffer, body.update)
    await _emptied(buffer, body.update)
    check_digest(f"sha256:{body.hexdigest()}", digest)


def check_digest(found: str, digest: str) -> None:
    """Refuse a body whose digest is not the one in the URL."""
    if found != digest:
        raise DigestMismatch(f"the body's SHA-256 is {found}, not {digest}")


async def judged_early(upload: WholeUpload, early: Early, length: int | None) -> Facts:
    """What judges say of the beginning of a file of that length, or of a whole one."""
    asked = judges.get_judges().ask(
        early.question, lambda: False, path=str(upload.path), bytes=length
    )
    return await asyncio.wrap_future(asked)


async def judged(request: Request, question: str, **asked: object) -> Facts:
    """What judges say of a body that has come as a whole; they stop where its sender leaves."""
    left = Event()
    answer = asyncio.wrap_future(judges.get_judges().ask(question, left.is_set, **asked))
    leaving = asyncio.ensure_future(_leaving(request))
    try:
        either: list[asyncio.Future[Any]] = [answer, leaving]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise InvalidRequest("the connection was cut before the body was judged")
    finally:
        left.set()
        answer.cancel()
        leaving.cancel()


async def _leaving(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _emptied(buffer: bytearray, into: Callable[[bytes], object]) -> None:
    data = bytes(buffer)
    buffer.clear()
    async with _WRITERS:
        await asyncio.to_thread(into, data)
