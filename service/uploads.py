"""A request's body into the store: streamed, hashed on the way, never in memory as a whole."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.contract.blobs import FileBlobs, FileUpload
from service.contract.errors import InvalidRequest, TooLarge

_BUFFER = 1 << 22  # bytes written at once, in a thread: the event loop stays free


@asynccontextmanager
async def receive(request: Request, blobs: FileBlobs, max_bytes: int) -> AsyncIterator[FileUpload]:
    """The whole body, written but not yet published: the caller judges and commits."""
    announced = request.headers.get("content-length")
    if announced is not None and int(announced) > max_bytes:
        raise TooLarge(f"the body has {announced} bytes, at most {max_bytes} are accepted")
    with blobs.upload() as upload:
        buffer: list[bytes] = []
        held = 0
        try:
            async for chunk in request.stream():
                buffer.append(chunk)
                held += len(chunk)
                if upload.size + held > max_bytes:
                    raise TooLarge(f"the body has more than {max_bytes} bytes")
                if held >= _BUFFER:
                    await asyncio.to_thread(upload.write, b"".join(buffer))
                    buffer, held = [], 0
        except ClientDisconnect:
            raise InvalidRequest("the connection was cut before the body ended") from None
        await asyncio.to_thread(upload.write, b"".join(buffer))
        if announced is not None and upload.size != int(announced):
            raise InvalidRequest(f"announced {announced} bytes, received {upload.size}")
        upload.flush()
        yield upload
