"""Bytes of an upload: written, judged as soon as what can be judged is there, and noted in the
record once they are durable.
"""

import asyncio
import time
from collections.abc import AsyncIterator

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.contract import limits
from service.contract.errors import Conflict, InvalidRequest, RequestRefused, TooLarge
from service.http.entrance.metering import meter_of
from service.http.entrance.uploads import Early, judged_early
from service.stored.unfinished import rows
from service.stored.unfinished.turns import Turn, Turns
from service.works.parts import Parts

_BUFFER = 1 << 20  # bytes a write: fifty uploads at once hold fifty of them
_NOTED_BYTES = 64 << 20  # between two notes in the record: what a crash may cost
_NOTED_SECONDS = 5.0
_BEGINNING = 512  # bytes that tell how many a judge needs


class Receiving:
    """The body of one request, appended to an upload."""

    def __init__(self, parts: Parts, turns: Turns, turn: Turn, early: Early) -> None:
        self._parts = parts
        self._turns = turns
        self._turn = turn
        self._early = early
        self._buffer = bytearray()
        self.is_refused = False  # for what it holds, and not for how it came
        self._judged = turn.upload.judged
        self._noted = turn.upload.received
        self._noted_at = time.monotonic()

    @property
    def size(self) -> int:
        return self._turn.file.size + len(self._buffer)

    async def all(self, request: Request, length: int | None) -> None:
        """Append the whole body. What has come when it is cut off stays; InvalidRequest says that
        it was cut, TooLarge that it goes beyond `length`.
        """
        most = limits.UPLOAD_BYTES if length is None else length
        meter = meter_of(request)
        try:
            async for chunk in self._chunks(request):
                meter.received += len(chunk)
                if meter.most is not None and meter.received > meter.most:
                    raise TooLarge(f"your team may send {meter.most:,} bytes more, and not this")
                if self.size + len(chunk) > most:
                    self.is_refused = True
                    raise TooLarge(f"the upload has more than {most} bytes")
                self._buffer += chunk
                await self._taken(length)
        finally:
            await self._end()

    async def _taken(self, length: int | None) -> None:
        if not self._judged and self.size >= self._early.needed(self._beginning()):
            await self._write()
            await self._judge(length)
            self._judged = True
        if len(self._buffer) >= _BUFFER:
            await self._write()
        if self._is_due():
            await self._note()

    async def _judge(self, length: int | None) -> None:
        try:
            await judged_early(self._turn.file, self._early, length)
        except RequestRefused:
            self.is_refused = True
            raise

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

    def _beginning(self) -> bytes:
        found = self._turn.file.beginning(_BEGINNING)
        return found + bytes(self._buffer[: _BEGINNING - len(found)])

    def _is_due(self) -> bool:
        new = self._turn.file.size - self._noted
        late = time.monotonic() - self._noted_at > _NOTED_SECONDS
        return new >= _NOTED_BYTES or (new > 0 and late)

    async def _write(self) -> None:
        async with self._turns.writing:
            data = bytes(self._buffer)
            self._buffer.clear()
            await asyncio.to_thread(self._turn.file.write, data)

    async def _note(self) -> None:
        async with self._turns.writing:
            is_there = await asyncio.to_thread(self._synced)
        if not is_there:
            raise rows.missing(self._turn.upload.id)

    def _synced(self) -> bool:
        """Make durable first, say so afterwards."""
        turn, records = self._turn, self._parts.records
        durable = turn.file.sync() if turn.file.size > self._noted else self._noted
        is_there = rows.noted(records, turn.upload, durable, judged=self._judged)
        self._noted, self._noted_at = durable, time.monotonic()
        return is_there

    async def _end(self) -> None:
        """Keep what has come, whatever ended it."""
        turn = self._turn
        try:
            if self._buffer:
                await self._write()
        finally:
            async with self._turns.writing:
                is_there = await asyncio.to_thread(self._synced)
            if is_there:
                self._turns.keep_hash(turn.upload.id, turn.file)
            else:
                turn.file.delete()
