"""Files that are sent to their SHA-256: asked for before they are sent, and stored once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from service.contract.errors import NotFound, ServiceUnavailable
from service.engine.blobs import Blobs, WholeUpload
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.http.dependencies import Running, caller_of
from service.http.entrance.uploads import (
    Ask,
    Early,
    check_again,
    check_digest,
    judged,
    judged_early,
    receive,
)
from service.stored.judges import Facts


class Stored(Protocol):
    """What `service.stored.checkpoints` and `service.stored.columns` have."""

    def exists(self, records: Records, blobs: Blobs, digest: str) -> bool: ...
    def add(
        self,
        records: Records,
        digest: str,
        size: int,
        description: dict[str, Any],
        blobs: Blobs | None = None,
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
    prepare: Callable[[ServiceParts, str, str], None] | None = None

    def head(self, service: Running, digest: str) -> Response:
        if not self.stored.exists(service.records, service.blobs, digest):
            raise NotFound(f"no {self.noun} {digest}")
        return Response()

    async def put(self, service: Running, digest: str, request: Request) -> Response:
        """200 where it was stored already, 201 where it is new."""
        records, blobs, caller = service.records, service.blobs, caller_of(request)
        known = await asyncio.to_thread(self.stored.exists, records, blobs, digest)
        if known:
            await check_again(request, digest)
        else:
            async with receive(request, blobs, self.early) as (upload, told):
                check_digest(upload.digest, digest)
                await self._store(service, digest, upload, told, partial(judged, request))
        return JSONResponse(await self._described(service, digest, caller), 200 if known else 201)

    async def keep(
        self, service: Running, digest: str, upload: WholeUpload, ask: Ask, caller: str
    ) -> tuple[dict[str, Any], bool]:
        """Judge and store what has arrived in another way; returns what it is, and whether it is
        new.
        """
        check_digest(upload.digest, digest)
        records, blobs = service.records, service.blobs
        known = await asyncio.to_thread(self.stored.exists, records, blobs, digest)
        if not known:
            told = await judged_early(upload, self.early, upload.size)
            await self._store(service, digest, upload, told, ask)
        return await self._described(service, digest, caller), not known

    async def _store(
        self, service: Running, digest: str, upload: WholeUpload, told: Facts, ask: Ask
    ) -> None:
        facts = told if self.whole is None else await ask(self.whole, path=str(upload.path))
        await asyncio.to_thread(upload.commit)
        known = service.records, digest, upload.size, facts, service.blobs
        await asyncio.to_thread(self.stored.add, *known)

    async def _described(self, service: Running, digest: str, caller: str) -> dict[str, Any]:
        try:
            if self.prepare is not None:
                await asyncio.to_thread(self.prepare, service, digest, caller)
            answer = await asyncio.to_thread(self.stored.get, service.records, digest)
        except NotFound:
            raise ServiceUnavailable(
                f"{digest} was deleted while it was sent; send it again"
            ) from None
        return answer.model_dump(mode="json")
