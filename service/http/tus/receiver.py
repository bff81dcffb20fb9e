"""Receiver of uploads: appends a request's body to an upload. Bytes are judged as early as
possible, and noted in the record once they are durable.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.contract.askers import Scope
from service.contract.errors import (
    BodyTooLarge,
    Conflict,
    InvalidRequest,
    OffsetMismatch,
    PrescoreError,
    RequestRefused,
    UploadComplete,
    UploadRefused,
)
from service.http.access import find_meter, require_scope
from service.http.dependencies import AppParts, find_asker
from service.http.tus import completion, protocol
from service.http.uploads import judge_beginning
from service.stored import resumable_uploads
from service.stored.resumable_uploads import UnfinishedUpload, UploadPurpose
from service.stored.upload_turns import UploadTurn

_BUFFER = 1 << 20  # bytes a write: fifty uploads at once hold fifty of them
_NOTED_BYTES = 64 << 20  # between two notes in the record: what a crash may cost
_NOTED_SECONDS = 5.0
_BEGINNING = 512  # bytes that tell how many a judge needs
_SOON = 20.0  # seconds: what is judged by its header alone has ended by then


async def append_body(
    request: Request, service: AppParts, upload: UnfinishedUpload, offset: int = 0
) -> UnfinishedUpload:
    """The upload with this request's bytes; what it became is stored if it has all now."""
    async with service.turns.taken(service, upload) as turn:
        upload = turn.upload
        if upload.has_ended or upload.complete:
            raise make_complete_refusal(upload)
        if offset != upload.received:
            raise OffsetMismatch(
                f"expected bytes from {upload.received} on, found Upload-Offset: {offset}",
                offset=upload.received,
            )
        _check_fits(request, upload)
        receiver = BodyReceiver(service, turn)
        try:
            await receiver.receive(request)
        except RequestRefused as error:
            if completion.is_final(error) and receiver.is_refused:
                await completion.refuse_upload(service, upload, turn.file, error)
            raise
        has_all = turn.file.size == upload.length
        if has_all:
            await asyncio.to_thread(resumable_uploads.note_complete, service.records, upload.id)
    upload = await asyncio.to_thread(resumable_uploads.find_upload, service.records, upload.id)
    return await finish_upload(request, service, upload) if has_all else upload


async def finish_upload(
    request: Request, service: AppParts, upload: UnfinishedUpload
) -> UnfinishedUpload:
    """A complete upload once it is stored; raises why it was refused."""
    if upload.location is None:
        await completion.finish_upload(service, upload, find_asker(request))
    return await asyncio.to_thread(resumable_uploads.find_upload, service.records, upload.id)


def _check_fits(request: Request, upload: UnfinishedUpload) -> None:
    """Refuse what would go beyond the length before a byte of it is read."""
    left, size = upload.length - upload.received, protocol.read_length(request)
    if size is not None and size > left:
        raise BodyTooLarge(f"expected {left} bytes at most, found {size}")


class BodyReceiver:
    """The body of one request, on its way to an upload's file. `is_refused`: for what the file
    holds, and not for how it came.
    """

    def __init__(self, service: AppParts, turn: UploadTurn) -> None:
        self.is_refused = False
        self._service = service
        self._turn = turn
        self._early = completion.find_early_question(turn.upload.purpose)
        self._buffer = bytearray()
        self._judged = turn.upload.judged
        self._noted = turn.upload.received
        self._noted_at = time.monotonic()

    @property
    def size(self) -> int:
        return self._turn.file.size + len(self._buffer)

    async def receive(self, request: Request) -> None:
        """Append the whole body. What has come when it is cut off stays; InvalidRequest says that
        it was cut, TooLarge that it goes beyond the upload's length.
        """
        most, meter = self._turn.upload.length, find_meter(request)
        try:
            async for chunk in self._chunks(request):
                meter.received += len(chunk)
                if meter.most is not None and meter.received > meter.most:
                    raise BodyTooLarge(
                        f"your team may send {meter.most:,} bytes more, and not this"
                    )
                if self.size + len(chunk) > most:
                    self.is_refused = True
                    raise BodyTooLarge(f"the upload has more than {most} bytes")
                self._buffer += chunk
                await self._take()
        finally:
            await self._end()

    async def _chunks(self, request: Request) -> AsyncIterator[bytes]:
        """The body as it comes, until another request takes over."""
        leaving = asyncio.ensure_future(self._turn.leave.wait())
        coming = request.stream()
        chunk: asyncio.Future[bytes | None] = leaving.get_loop().create_future()
        try:
            while True:
                chunk = asyncio.ensure_future(anext(coming, None))
                await asyncio.wait((chunk, leaving), return_when=asyncio.FIRST_COMPLETED)
                if not chunk.done():
                    raise Conflict("another request has taken this upload over")
                if (data := chunk.result()) is None:
                    return
                yield data
        except ClientDisconnect:
            raise InvalidRequest("the connection was cut before the body ended") from None
        finally:
            chunk.cancel()
            leaving.cancel()

    async def _take(self) -> None:
        if not self._judged and self.size >= self._early.needed(self._beginning()):
            await self._write()
            await self._judge()
        if len(self._buffer) >= _BUFFER:
            await self._write()
        if self._is_due() and not await self._note():
            raise resumable_uploads.upload_not_found(self._turn.upload.id)

    def _beginning(self) -> bytes:
        found = self._turn.file.beginning(_BEGINNING)
        return found + bytes(self._buffer[: _BEGINNING - len(found)])

    async def _judge(self) -> None:
        try:
            await judge_beginning(self._turn.file, self._early, self._turn.upload.length)
        except RequestRefused:
            self.is_refused = True
            raise
        self._judged = True

    def _is_due(self) -> bool:
        new = self._turn.file.size - self._noted
        is_late = time.monotonic() - self._noted_at > _NOTED_SECONDS
        return new >= _NOTED_BYTES or (new > 0 and is_late)

    async def _write(self) -> None:
        async with self._service.turns.writing:
            data = bytes(self._buffer)
            self._buffer.clear()
            await asyncio.to_thread(self._turn.file.write, data)

    async def _note(self) -> bool:
        """Make durable first, say so afterwards; whether the upload is still there."""
        async with self._service.turns.writing:
            return await asyncio.to_thread(self._sync)

    def _sync(self) -> bool:
        turn = self._turn
        durable = turn.file.sync() if turn.file.size > self._noted else self._noted
        is_there = resumable_uploads.note_received(
            self._service.records, turn.upload, durable, judged=self._judged
        )
        self._noted, self._noted_at = durable, time.monotonic()
        return is_there

    async def _end(self) -> None:
        """Keep what has come, whatever ended it."""
        turn = self._turn
        try:
            if self._buffer:
                await self._write()
        finally:
            if await self._note():
                self._service.turns.keep_hash(turn.upload.id, turn.file)
            else:
                turn.file.delete()


async def wait_for_writer(service: AppParts, upload: UnfinishedUpload) -> UnfinishedUpload:
    """The upload once nobody writes to it, so that what it says can be relied on."""
    is_open = not upload.complete and not upload.has_ended
    if is_open and (upload.writer is not None or service.turns.is_held(upload.id)):
        async with service.turns.taken(service, upload) as turn:
            return turn.upload
    return upload


async def store_complete(
    request: Request, service: AppParts, upload: UnfinishedUpload
) -> UnfinishedUpload:
    """Begin to store what is complete and was not stored when the service ended."""
    if not upload.complete or upload.has_ended:
        return upload
    with contextlib.suppress(TimeoutError, PrescoreError):
        await asyncio.wait_for(finish_upload(request, service, upload), _SOON)
    return await asyncio.to_thread(resumable_uploads.find_upload, service.records, upload.id)


def make_complete_refusal(upload: UnfinishedUpload) -> RequestRefused:
    """The refusal of bytes for an upload that has all of them."""
    check_not_refused(upload)
    became = "is being stored" if upload.location is None else f"became {upload.location}"
    return UploadComplete(f"the upload is complete and {became}: nothing can be appended")


def check_not_refused(upload: UnfinishedUpload) -> None:
    if upload.is_refused:
        raise UploadRefused(
            f"this upload was refused (GET {protocol.PLACE}/{upload.id} says why): "
            "send another file"
        )


def check_scope(service: AppParts, purpose: UploadPurpose) -> None:
    """Forbidden where what an upload becomes needs more than uploads do."""
    if purpose.kind == "dataset":
        require_scope(service.asker, Scope.PUBLISH, "a version of a dataset")
