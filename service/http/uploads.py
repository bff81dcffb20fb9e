"""Request bodies in chunks, and uploads into the object store, hashed while they are received."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.contract.errors import InvalidRequest, TooLarge
from service.works.blobs import Blobs, Upload

_BUFFER = 1 << 22  # bytes per write; each write runs in a thread, to keep the event loop free
_WRITERS = asyncio.Semaphore(2)  # more would not hash faster, and would delay other requests


async def chunks(request: Request, max_bytes: int) -> AsyncIterator[bytes]:
    """The body in chunks; raises if it is longer than `max_bytes` or than its Content-Length."""
    announced = request.headers.get("content-length")
    if announced is not None and int(announced) > max_bytes:
        raise TooLarge(f"the body has {announced} bytes, at most {max_bytes} are accepted")
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > max_bytes:
                raise TooLarge(f"the body has more than {max_bytes} bytes")
            yield chunk
    except ClientDisconnect:
        raise InvalidRequest("the connection was cut before the body ended") from None
    if announced is not None and size != int(announced):
        raise InvalidRequest(f"announced {announced} bytes, received {size}")


@asynccontextmanager
async def receive(request: Request, blobs: Blobs, max_bytes: int) -> AsyncIterator[Upload]:
    """Write the whole body to an upload, which the caller checks and commits."""
    with blobs.upload() as upload:
        buffer: list[bytes] = []
        held = 0
        async for chunk in chunks(request, max_bytes):
            buffer.append(chunk)
            held += len(chunk)
            if held >= _BUFFER:
                await _write(upload, b"".join(buffer))
                buffer, held = [], 0
        await _write(upload, b"".join(buffer))
        upload.flush()
        yield upload


async def _write(upload: Upload, data: bytes) -> None:
    async with _WRITERS:
        await asyncio.to_thread(upload.write, data)
