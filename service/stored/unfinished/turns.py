"""One request at a time writes to an upload: a new one takes over, and the one before leaves.

A connection may be dead without the service knowing; whoever goes on must not wait for it. Within a
process the new request tells the old one to leave, between processes through the record, at which
each looks every second. The file is locked as long as somebody has it.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from service.contract import limits
from service.contract.errors import Conflict
from service.engine.blobs.resumed import BytesLost, Hashed, Held, Resumed
from service.engine.parts import Parts
from service.stored.unfinished import rows
from service.stored.unfinished.rows import Unfinished

log = structlog.get_logger()

_WAIT_SECONDS = 15.0  # for the one before: it leaves within one write, or one look
_LOOK_SECONDS = 1.0
_AGAIN_SECONDS = 0.1
_AT_ONCE = 2  # threads that write, hash and sync; more would delay other requests


class Turn:
    """The turn of one request: the open file, and the upload as the record had it."""

    def __init__(self) -> None:
        self.writer = secrets.token_hex(16)
        self.leave = asyncio.Event()
        self.ended = asyncio.Event()
        self.has_begun = False
        self.file: Resumed
        self.upload: Unfinished


class Turns:
    """Who writes in this process. Hashes are kept between requests, so that an upload in many small
    parts is read no second time.
    """

    def __init__(self) -> None:
        self.writing = asyncio.Semaphore(_AT_ONCE)
        self._held: dict[str, Turn] = {}
        self._hashes: OrderedDict[str, Hashed] = OrderedDict()
        self._watching: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def taken(self, parts: Parts, upload: Unfinished) -> AsyncIterator[Turn]:
        """NotFound where the upload was deleted, Conflict where the one before does not leave."""
        turn = await self._alone(upload.id)
        try:
            await self._open(parts, upload, turn)
            self._watch(parts)
            try:
                yield turn
            finally:
                turn.file.close()
                await asyncio.to_thread(rows.left, parts.records, upload.id, turn.writer)
        finally:
            del self._held[upload.id]
            turn.ended.set()

    def is_held(self, identity: str) -> bool:
        return identity in self._held

    async def _alone(self, identity: str) -> Turn:
        until = time.monotonic() + _WAIT_SECONDS
        while (before := self._held.get(identity)) is not None:
            before.leave.set()
            try:
                await asyncio.wait_for(before.ended.wait(), until - time.monotonic())
            except TimeoutError:
                raise _busy(identity) from None
        turn = self._held[identity] = Turn()
        return turn

    async def _open(self, parts: Parts, upload: Unfinished, turn: Turn) -> None:
        if not await asyncio.to_thread(rows.take, parts.records, upload.id, turn.writer):
            raise rows.missing(upload.id)
        turn.file = await self._locked(parts, upload.id)
        try:
            # Read once the file is locked: until then the one before may have noted more.
            turn.upload = await asyncio.to_thread(rows.find, parts.records, upload.id)
            if not turn.upload.has_ended:
                _begin(parts, turn)
            turn.has_begun = True
        except BaseException:
            turn.file.close()
            raise

    async def _locked(self, parts: Parts, identity: str) -> Resumed:
        until = time.monotonic() + _WAIT_SECONDS
        hashed = self._hashes.pop(identity, None)
        while True:
            try:
                return await asyncio.to_thread(parts.blobs.resumed, identity, hashed)
            except Held:
                if time.monotonic() > until:
                    raise _busy(identity) from None
            await asyncio.sleep(_AGAIN_SECONDS)

    def keep_hash(self, identity: str, file: Resumed) -> None:
        """Only what is noted in the record as durable: other processes may replace the rest."""
        self._hashes[identity] = file.hashed
        while len(self._hashes) > limits.UNFINISHED:
            self._hashes.popitem(last=False)

    def forget_hash(self, identity: str) -> None:
        self._hashes.pop(identity, None)

    def _watch(self, parts: Parts) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._look(parts))

    async def _look(self, parts: Parts) -> None:
        """Let those leave whose upload another process has taken, or deleted."""
        while self._held:
            await asyncio.sleep(_LOOK_SECONDS)
            held = dict(self._held)
            if not held:
                return
            try:
                found = await asyncio.to_thread(rows.writers, parts.records, held)
            except Exception as error:  # noqa: BLE001  the record is away: look again
                log.warning("uploads are not looked at", error=type(error).__name__)
                continue
            for identity, turn in held.items():
                if turn.has_begun and found.get(identity) != turn.writer:
                    turn.leave.set()


def _begin(parts: Parts, turn: Turn) -> None:
    """Go on where the record says."""
    upload = turn.upload
    try:
        turn.file.begin(upload.received)
    except BytesLost:
        turn.file.delete()
        rows.delete(parts.records, upload.id)
        raise rows.missing(upload.id) from None


def _busy(identity: str) -> Conflict:
    return Conflict(f"another request writes to the upload {identity!r:.100}; try again")
