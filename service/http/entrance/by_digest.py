"""Files that are sent to their SHA-256: asked for before they are sent, and stored once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from service.contract.errors import NotFound
from service.http.dependencies import Running, address_of
from service.http.entrance.uploads import Early, check_again, check_digest, judged, receive
from service.stored.judges import Facts
from service.works.blobs import Blobs, Upload
from service.works.parts import Parts
from service.works.records import Records


class Stored(Protocol):
    """What `service.stored.checkpoints` and `service.stored.columns` have."""

    def exists(self, records: Records, blobs: Blobs, digest: str) -> bool: ...
    def add(
        self, records: Records, digest: str, size: int, description: dict[str, Any]
    ) -> None: ...
    def get(self, records: Records, digest: str) -> BaseModel: ...


@dataclass(frozen=True)
class ByDigest:
    """`whole`: what judges are asked once the whole file is there; None: its beginning told all.
    `prepare`: what is begun whenever a file was sent, for this caller.
    """

    noun: str
    stored: Stored
    early: Early
    whole: str | None = None
    prepare: Callable[[Parts, str, str], None] | None = None

    def head(self, service: Running, digest: str) -> Response:
        if not self.stored.exists(service.records, service.blobs, digest):
            raise NotFound(f"no {self.noun} {digest}")
        return Response()

    async def put(self, service: Running, digest: str, request: Request) -> Response:
        """200 where it was stored already, 201 where it is new."""
        records, blobs = service.records, service.blobs
        known = await asyncio.to_thread(self.stored.exists, records, blobs, digest)
        if known:
            await check_again(request, digest)
        else:
            async with receive(request, blobs, self.early) as (upload, told):
                check_digest(upload.digest, digest)
                facts = await self._facts(request, upload, told)
                await asyncio.to_thread(upload.commit)
            await asyncio.to_thread(self.stored.add, records, digest, upload.size, facts)
        if self.prepare is not None:
            await asyncio.to_thread(self.prepare, service, digest, address_of(request))
        answer = await asyncio.to_thread(self.stored.get, records, digest)
        return JSONResponse(answer.model_dump(), 200 if known else 201)

    async def _facts(self, request: Request, upload: Upload, told: Facts) -> Facts:
        if self.whole is None:
            return told
        return await judged(request, self.whole, path=str(upload.path))
