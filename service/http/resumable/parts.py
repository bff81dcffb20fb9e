"""/v1/uploads/{id}/parts: parts that a client sends to the object store itself."""

import asyncio
import time

from fastapi import APIRouter, Request

from service.contract.api.data import PartOut, PartsOut
from service.contract.api.texts import rfc3339
from service.contract.errors import Conflict, NotFound, StoreUnavailable, TooLarge, UploadRefused
from service.http import openapi
from service.http.dependencies import Running, Service
from service.http.entrance.metering import meter_of
from service.http.resumable import answers, appending
from service.http.resumable.routes import Identity
from service.stored.unfinished import rows, staging
from service.stored.unfinished.rows import Unfinished
from service.stored.unfinished.staging import Part

router = APIRouter(prefix="/v1/uploads", tags=["uploads"], route_class=answers.UploadRoute)
AT_ONCE = 16  # parts whose URLs are told: a line of 100 kB/s sends them before the URLs end


@router.post(
    "/{id}/parts",
    operation_id="place_parts",
    summary="Ask where an upload's parts are sent",
    response_description="The next parts, or that all are there.",
    responses=openapi.refusals(NotFound, Conflict, TooLarge, UploadRefused, StoreUnavailable),
)
async def place(id: Identity, request: Request, service: Service) -> PartsOut:
    """Where objects lie in an S3-compatible store that clients reach, a client may send a file
    there itself, in place of `PATCH`: begin the upload with `Upload-Length`, ask here, PUT each
    part to its URL, in any order and several at a time, and ask again until it is `complete`. What
    was sent stays; who asks again, on another machine as well, is told of the rest alone. 409 where
    this is not offered: append with PATCH.
    """
    upload = await asyncio.to_thread(rows.find, service.records, id)
    appending.check_scope(service, upload.purpose)
    appending.check_not_refused(upload)
    length = 0 if upload.length is None else upload.length
    if not (upload.complete or upload.has_ended):
        if upload.length is None:
            raise Conflict("expected Upload-Length when the upload was begun: append with PATCH")
        missing = await _missing(request, service, upload, length)
        if missing:
            left = sum(part.bytes for part in missing)
            found = await asyncio.to_thread(_placed, service, id, missing[:AT_ONCE])
            return PartsOut(length=length, staged=length - left, complete=False, parts=found)
        await asyncio.to_thread(rows.completed, service.records, id, length)
        upload = await asyncio.to_thread(rows.find, service.records, id)
    upload = await appending.noticed(request, service, upload)
    return PartsOut(length=length, staged=upload.staged, complete=True, parts=[])


async def _missing(
    request: Request, service: Running, upload: Unfinished, length: int
) -> list[Part]:
    """What the store does not have; what it has got since counts among the team's bytes."""
    meter = meter_of(request)
    if meter.most is not None and length - upload.staged > meter.most:
        raise TooLarge(f"your team may send {meter.most:,} bytes more, and not this")
    found = await asyncio.to_thread(staging.missing, service, upload, length)
    staged = length - sum(part.bytes for part in found)
    meter.received = max(0, staged - upload.staged)
    if not await asyncio.to_thread(rows.staged, service.records, upload, staged):
        raise rows.missing(upload.id)
    return found


def _placed(service: Running, identity: str, parts: list[Part]) -> list[PartOut]:
    upload = rows.find(service.records, identity)
    until = rfc3339(time.time() + staging.URL_SECONDS)
    return [
        PartOut(**vars(part), url=staging.url(service, upload, part), expires_at=until)
        for part in parts
    ]
