"""Turns at uploads: a new request takes over, and the one before leaves.

A connection may be dead without the service knowing; whoever goes on must not wait for it. Within a
process the new request tells the old one to leave, between processes through the record, at which
each looks every second. The file is locked as long as somebody has it.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from threading import Event
from typing import Any

import structlog

from service.contract import limits
from service.contract.errors import Conflict
from service.engine.blobs.folder import BlobUpload, PartialHash, UploadBytesLost, UploadLocked
from service.engine.service_parts import ServiceParts
from service.stored import resumable_uploads
from service.stored.resumable_uploads import UnfinishedUpload

log = structlog.get_logger()

_WAIT_SECONDS = 15.0  # for the one before: it leaves within one write, or one look
_LOOK_SECONDS = 1.0
_AGAIN_SECONDS = 0.1
_AT_ONCE = 2  # threads that write, hash and sync; more would delay other requests


class UploadTurn:
    """The turn of one request: the open file, and the upload as the record had it."""

    def __init__(self) -> None:
        self.writer = secrets.token_hex(16)
        self.leave = asyncio.Event()
        self.ended = asyncio.Event()
        self.has_begun = False
        self.file: BlobUpload
        self.upload: UnfinishedUpload


class UploadTurns:
    """The turns of this process. Hashes are kept between requests: no byte is read twice."""

    def __init__(self) -> None:
        self.writing = asyncio.Semaphore(_AT_ONCE)
        self._held: dict[str, UploadTurn] = {}
        self._hashes: OrderedDict[str, PartialHash] = OrderedDict()
        self._watching: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def taken(
        self, parts: ServiceParts, upload: UnfinishedUpload
    ) -> AsyncIterator[UploadTurn]:
        """NotFound where the upload was deleted, Conflict where the one before does not leave."""
        turn = await self._alone(upload.id)
        try:
            await self._open(parts, upload, turn)
            self._watch(parts)
            try:
                yield turn
            finally:
                turn.file.close()
                await asyncio.to_thread(
                    resumable_uploads.leave_upload, parts.records, upload.id, turn.writer
                )
        finally:
            del self._held[upload.id]
            turn.ended.set()

    def is_held(self, identity: str) -> bool:
        return identity in self._held

    async def _alone(self, identity: str) -> UploadTurn:
        until = time.monotonic() + _WAIT_SECONDS
        while (before := self._held.get(identity)) is not None:
            before.leave.set()
            try:
                await asyncio.wait_for(before.ended.wait(), until - time.monotonic())
            except TimeoutError:
                raise _busy(identity) from None
        turn = self._held[identity] = UploadTurn()
        return turn

    async def _open(self, parts: ServiceParts, upload: UnfinishedUpload, turn: UploadTurn) -> None:
        if not await asyncio.to_thread(
            resumable_uploads.take_upload, parts.records, upload.id, turn.writer
        ):
            raise resumable_uploads.upload_not_found(upload.id)
        turn.file = await self._locked(parts, upload.id)
        try:
            # Read once the file is locked: until then the one before may have noted more.
            turn.upload = await asyncio.to_thread(
                resumable_uploads.find_upload, parts.records, upload.id
            )
            if not turn.upload.has_ended:
                _begin(parts, turn)
            turn.has_begun = True
        except BaseException:
            turn.file.close()
            raise

    async def _locked(self, parts: ServiceParts, identity: str) -> BlobUpload:
        until = time.monotonic() + _WAIT_SECONDS
        hashed = self._hashes.pop(identity, None)
        while True:
            try:
                return await asyncio.to_thread(parts.blobs.resumed, identity, hashed)
            except UploadLocked:
                if time.monotonic() > until:
                    raise _busy(identity) from None
            await asyncio.sleep(_AGAIN_SECONDS)

    def keep_hash(self, identity: str, file: BlobUpload) -> None:
        """Keep the hash of bytes that are noted as durable: other processes may replace the
        rest.
        """
        self._hashes[identity] = file.hashed
        while len(self._hashes) > limits.UNFINISHED:
            self._hashes.popitem(last=False)

    def forget_hash(self, identity: str) -> None:
        self._hashes.pop(identity, None)

    def _watch(self, parts: ServiceParts) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._look(parts))

    async def _look(self, parts: ServiceParts) -> None:
        """Let those leave whose upload another process has taken, or deleted."""
        while self._held:
            await asyncio.sleep(_LOOK_SECONDS)
            held = dict(self._held)
            if not held:
                return
            try:
                found = await asyncio.to_thread(resumable_uploads.find_writers, parts.records, held)
            except Exception as error:  # noqa: BLE001  the record is away: look again
                log.warning("uploads are not looked at", error=type(error).__name__)
                continue
            for identity, turn in held.items():
                if turn.has_begun and found.get(identity) != turn.writer:
                    turn.leave.set()


def _begin(parts: ServiceParts, turn: UploadTurn) -> None:
    """Go on where the record says."""
    upload = turn.upload
    try:
        turn.file.begin(upload.received)
    except UploadBytesLost:
        turn.file.delete()
        resumable_uploads.delete_upload(parts.records, upload.id)
        raise resumable_uploads.upload_not_found(upload.id) from None


def _busy(identity: str) -> Conflict:
    return Conflict(f"another request writes to the upload {identity!r:.100}; try again")


Completion = Callable[[Event], Coroutine[Any, Any, Any]]  # the event: nobody wants it


class UploadCompletions:
    """The uploads that are judged and stored just now, in this process."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[asyncio.Task[Any], Event]] = {}

    async def ended(self, identity: str, end: Completion) -> Any:
        """The result of `end`, or its error, for all who wait; it goes on where they leave."""
        if identity not in self._tasks:
            nobody = Event()
            task = asyncio.create_task(end(nobody))
            self._tasks[identity] = task, nobody
            task.add_done_callback(lambda ended: self._over(identity, ended))
        return await asyncio.shield(self._tasks[identity][0])

    async def give_up(self, identity: str) -> None:
        """End the judging, if it is at that; what is being stored is stored."""
        if identity in self._tasks:
            task, nobody = self._tasks[identity]
            nobody.set()
            await asyncio.wait((task,))

    def _over(self, identity: str, task: asyncio.Task[Any]) -> None:
        del self._tasks[identity]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("an upload was not stored", upload=identity, error=type(error).__name__)
