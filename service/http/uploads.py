"""Uploads into the object store: bodies in chunks, files by digest, bundles of datasets."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, Protocol

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from prescore.models.datasets import Dataset
from service.contract import limits
from service.contract.askers import Asker
from service.contract.errors import (
    BodyTooLarge,
    DigestMismatch,
    InvalidRequest,
    NotFound,
    ServiceUnavailable,
    UnsupportedMedia,
)
from service.contract.formats.bundles import plain_tar
from service.contract.formats.bundles.files import ContentDigests
from service.engine import quotas
from service.engine.blobs import Blobs, BlobUpload
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.http.access import find_meter
from service.http.dependencies import AppParts, find_asker
from service.http.loop_limits import LoopLimit
from service.stored import dataset_versions, judges
from service.stored.dataset_versions import JudgedBundle
from service.stored.judges import Facts

_BUFFER = 1 << 22  # bytes per write; each write runs in a thread, to keep the event loop free
_BEGINNING = 512  # bytes that tell how many are needed
_WRITERS = LoopLimit(2)  # more would not hash faster, and would delay other requests


async def read_chunks(request: Request, max_bytes: int) -> AsyncIterator[bytes]:
    """The body in chunks; raises if it is longer than `max_bytes` or than its Content-Length."""
    announced = request.headers.get("content-length")
    meter = find_meter(request)
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


def check_media_type(request: Request, expected: str) -> None:
    """Refuse a body of another type."""
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found != expected:
        raise UnsupportedMedia(
            f"expected a body of type {expected}, found {found or 'none'!r:.100}"
        )


@dataclass(frozen=True)
class EarlyQuestion:
    """Question to judges before the rest of a body comes; `needed`: bytes, by the first ones."""

    question: str
    needed: Callable[[bytes], int]


class AskJudges(Protocol):
    """Asks judges about a whole file."""

    def __call__(self, question: str, /, **asked: object) -> Awaitable[Facts]: ...


@asynccontextmanager
async def receive_upload(
    request: Request, blobs: Blobs, early: EarlyQuestion
) -> AsyncIterator[tuple[BlobUpload, Facts]]:
    """Write the whole body to an upload, which the caller commits, and judge its beginning."""
    announced = request.headers.get("content-length")
    length = None if announced is None else int(announced)
    with blobs.upload() as upload:
        buffer = bytearray()
        facts: Facts | None = None
        beginning = b""
        async for chunk in read_chunks(request, limits.UPLOAD_BYTES):
            buffer += chunk
            if facts is None:
                if upload.size == 0:
                    beginning = bytes(buffer[:_BEGINNING])
                if upload.size + len(buffer) >= early.needed(beginning):
                    await _empty(buffer, upload.write)
                    facts = await judge_beginning(upload, early, length)
                    if facts == judges.NOT_YET:
                        length = None  # judged again when all of it is there
            if len(buffer) >= _BUFFER:
                await _empty(buffer, upload.write)
        await _empty(buffer, upload.write)
        if facts is None or length is None:
            facts = await judge_beginning(upload, early, upload.size)
        yield upload, facts


async def check_repeated_upload(request: Request, digest: str) -> None:
    """Read the body of what is stored already, keep nothing, and refuse it if it is another one."""
    body = hashlib.sha256()
    buffer = bytearray()
    async for chunk in read_chunks(request, limits.UPLOAD_BYTES):
        buffer += chunk
        if len(buffer) >= _BUFFER:
            await _empty(buffer, body.update)
    await _empty(buffer, body.update)
    check_digest(f"sha256:{body.hexdigest()}", digest)


def check_digest(found: str, digest: str) -> None:
    """Refuse a body whose digest is not the one in the URL."""
    if found != digest:
        raise DigestMismatch(f"the body's SHA-256 is {found}, not {digest}")


async def judge_beginning(upload: BlobUpload, early: EarlyQuestion, length: int | None) -> Facts:
    """Ask judges about the beginning of a file of that length in bytes, or about a whole one."""
    asked = judges.get_judges().ask(
        early.question, lambda: False, path=str(upload.path), bytes=length
    )
    return await asyncio.wrap_future(asked)


async def judge_upload(request: Request, question: str, **asked: object) -> Facts:
    """Ask judges about a body that has come as a whole; they stop when its sender leaves."""
    left = Event()
    answer = asyncio.wrap_future(judges.get_judges().ask(question, left.is_set, **asked))
    leaving = asyncio.ensure_future(wait_until_left(request, left))
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


async def wait_until_left(request: Request, left: Event) -> None:
    """Wait until the client has left, and note it."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    left.set()


async def _empty(buffer: bytearray, into: Callable[[bytes], object]) -> None:
    data = bytes(buffer)
    buffer.clear()
    async with _WRITERS:
        await asyncio.to_thread(into, data)


class DigestStore(Protocol):
    """Protocol of the modules that store checkpoints and columns."""

    def exists(self, records: Records, blobs: Blobs, digest: str) -> bool: ...
    def add(
        self,
        records: Records,
        digest: str,
        size: int,
        description: dict[str, Any],
        blobs: Blobs | None = None,
    ) -> None: ...
    def get(self, parts: ServiceParts, digest: str) -> BaseModel: ...


@dataclass(frozen=True)
class DigestFiles:
    """`whole`: what judges are asked once the whole file is there; None: its beginning told all.
    `prepare`: what is begun whenever a file was sent, for this caller, unless the last argument
    raises LimitReached.
    """

    noun: str
    stored: DigestStore
    early: EarlyQuestion
    whole: str | None = None
    prepare: Callable[[ServiceParts, str, str, Callable[[], None]], None] | None = None

    def head(self, service: AppParts, digest: str) -> Response:
        if not self.stored.exists(service.records, service.blobs, digest):
            raise NotFound(f"no {self.noun} {digest}")
        return Response()

    async def put(self, service: AppParts, digest: str, request: Request) -> Response:
        """200 where it was stored already, 201 where it is new."""
        records, blobs, asker = service.records, service.blobs, find_asker(request)
        known = await asyncio.to_thread(self.stored.exists, records, blobs, digest)
        if known:
            await check_repeated_upload(request, digest)
        else:
            async with receive_upload(request, blobs, self.early) as (upload, told):
                check_digest(upload.digest, digest)
                await self._store(service, digest, upload, told, partial(judge_upload, request))
        return JSONResponse(await self._describe(service, digest, asker), 200 if known else 201)

    async def keep(
        self, service: AppParts, digest: str, upload: BlobUpload, ask: AskJudges, asker: Asker
    ) -> None:
        """Judge and store a file that has arrived in another way."""
        check_digest(upload.digest, digest)
        records, blobs = service.records, service.blobs
        known = await asyncio.to_thread(self.stored.exists, records, blobs, digest)
        if not known:
            told = await judge_beginning(upload, self.early, upload.size)
            await self._store(service, digest, upload, told, ask)
        await self._describe(service, digest, asker)

    async def _store(
        self, service: AppParts, digest: str, upload: BlobUpload, told: Facts, ask: AskJudges
    ) -> None:
        facts = told if self.whole is None else await ask(self.whole, path=str(upload.path))
        await asyncio.to_thread(upload.commit)
        known = service.records, digest, upload.size, facts, service.blobs
        await asyncio.to_thread(self.stored.add, *known)

    async def _describe(self, service: AppParts, digest: str, asker: Asker) -> dict[str, Any]:
        try:
            if self.prepare is not None:
                allowed = service.allowed.of(asker)
                check = partial(
                    quotas.check_computing_quota, service.records.of(asker.team), allowed
                )
                await asyncio.to_thread(self.prepare, service, digest, asker.caller, check)
            answer = await asyncio.to_thread(self.stored.get, service, digest)
        except NotFound:
            raise ServiceUnavailable(
                f"{digest} was deleted while it was sent; send it again"
            ) from None
        return answer.model_dump(mode="json")


DATASET_BEGINNING = EarlyQuestion("beginning", lambda _: plain_tar.BLOCK)
_OF_FILES = (".tar", ".gz", ".tgz", ".zip", ".json", ".jsonl")


def check_dataset_name(name: str) -> None:
    """Raise for a file's name: curl adds it to an address that ends with a slash."""
    if name.lower().endswith(_OF_FILES):
        raise InvalidRequest(
            f"{name} is the name of a file, and a dataset is called as flickr8k is: curl adds the "
            "file's name to an address that ends with /",
            [("/path/name", f"expected a name without {', '.join(_OF_FILES)} at its end")],
        )


async def store_dataset(
    service: AppParts, name: str, upload: BlobUpload, ask: AskJudges
) -> tuple[Dataset, bool]:
    """Judge the whole bundle and store it; returns the version, and whether it is new."""
    records, blobs = service.records, service.blobs
    with blobs.derived.new() as images, blobs.derived.new() as captions:
        path = str(upload.path)
        facts = await ask("dataset", path=path, images=str(images))
        content = ContentDigests(**await ask("content", path=path, captions=str(captions)))
        bundle = JudgedBundle(upload, facts, content, captions, images)
        storing = partial(
            dataset_versions.store_version, records, blobs, name, bundle, service.asker
        )
        return await asyncio.to_thread(storing)
