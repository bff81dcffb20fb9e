"""/v1/uploads: begin, append, ask, give up; and parts that a client sends to the object store."""

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from prescore.models.uploads import Upload, UploadPage, UploadPart, UploadParts
from service.contract import errors
from service.contract.api.field_types import Digest, moment
from service.http import openapi
from service.http.access import find_meter
from service.http.dependencies import AppParts, Service
from service.http.service_route import ServiceRoute
from service.http.tus import completion, protocol, receiver
from service.http.uploads import check_media_type
from service.stored import resumable_uploads, staged_uploads
from service.stored.resumable_uploads import UnfinishedUpload
from service.stored.staged_uploads import FilePart

router = APIRouter(
    prefix=protocol.PLACE,
    tags=["uploads"],
    route_class=ServiceRoute,
    dependencies=[Depends(protocol.check_version)],
)
Identity = Annotated[str, Path(description="The last part of the upload's URL.")]
URLS_AT_ONCE = 16  # a line of 100 kB/s sends these parts before their URLs end
_STATE = ("Tus-Resumable", "Upload-Offset", "Upload-Expires", "Content-Location")
_JUDGED = (
    *(errors.DigestMismatch, errors.InvalidCheckpoint, errors.InvalidBundle, errors.ColumnsRefused),
    *(errors.BodyTooLarge, errors.UnsupportedMedia, errors.UnsupportedVersion, errors.DiskFull),
    *(errors.StoreUnavailable, errors.NotFound, errors.Conflict),
)


@router.post(
    "",
    operation_id="create_upload",
    summary="Begin an upload that can be resumed",
    status_code=201,
    response_class=Response,
    response_description="Begun; or, if the request had all bytes, stored.",
    responses={
        201: openapi.describe_headers("Location", *_STATE),
        **openapi.describe_refusals(*_JUDGED, errors.TooManyUploads),
    },
)
async def create_upload(
    request: Request,
    service: Service,
    length: protocol.UploadLength,
    metadata: protocol.UploadMetadata,
) -> Response:
    """`Location` is the upload's URL, to which PATCH appends. The first bytes may be sent along, as
    `application/offset+octet-stream`. What is sent is judged as PUT judges it, its beginning before
    the rest has come.
    """
    purpose = protocol.read_purpose(metadata)
    receiver.check_scope(service, purpose)
    if protocol.has_body(request):
        check_media_type(request, protocol.PART)
    upload = await asyncio.to_thread(
        resumable_uploads.create_upload, service.records, purpose, length, metadata
    )
    if protocol.has_body(request) or length == 0:
        upload = await receiver.append_body(request, service, upload)
    return Response(
        None, 201, {"Location": f"{protocol.PLACE}/{upload.id}", **protocol.describe_state(upload)}
    )


@router.get(
    "",
    operation_id="list_uploads",
    summary="List unfinished uploads",
    responses=openapi.describe_refusals(errors.UnsupportedVersion),
)
def list_uploads(service: Service, digest: Annotated[Digest | None, Query()] = None) -> UploadPage:
    """Uploads that have begun and not ended, the latest first. A client that has lost an upload's
    URL finds it by the file's digest.
    """
    found = resumable_uploads.list_unfinished(service.records, digest)
    return UploadPage(items=[resumable_uploads.format_upload(each) for each in found], next=None)


@router.get(
    "/{id}",
    operation_id="get_upload",
    summary="See an upload",
    responses=openapi.describe_refusals(errors.NotFound, errors.UnsupportedVersion),
)
async def get_upload(id: Identity, request: Request, service: Service) -> Upload:
    """The state of an upload, what it became, or why it was refused: also for a client that has not
    received the answer to the last bytes.
    """
    upload = await asyncio.to_thread(resumable_uploads.find_upload, service.records, id)
    return resumable_uploads.format_upload(await receiver.store_complete(request, service, upload))


@router.head(
    "/{id}",
    operation_id="resume_upload",
    summary="Ask where an upload goes on",
    status_code=204,
    response_class=Response,
    response_description="Its offset: send the bytes after it.",
    responses={
        204: openapi.describe_headers(*_STATE, "Upload-Length", "Upload-Metadata", "Cache-Control"),
        **openapi.describe_refusals(
            errors.NotFound, errors.Conflict, errors.UploadRefused, errors.UnsupportedVersion
        ),
    },
)
async def resume_upload(id: Identity, request: Request, service: Service) -> Response:
    """Another request that sends bytes of the upload is cut off: its connection may be dead without
    that having been noticed.
    """
    upload = await asyncio.to_thread(resumable_uploads.find_upload, service.records, id)
    upload = await receiver.wait_for_writer(service, upload)
    upload = await receiver.store_complete(request, service, upload)
    receiver.check_not_refused(upload)
    said = {"Upload-Length": str(upload.length), "Upload-Metadata": upload.told}
    return Response(
        None, 204, {**protocol.describe_state(upload), **said, "Cache-Control": "no-store"}
    )


@router.patch(
    "/{id}",
    operation_id="append_upload",
    summary="Append to an upload",
    status_code=204,
    response_class=Response,
    response_description="Appended; where these were the last bytes, stored.",
    responses={
        204: openapi.describe_headers(*_STATE),
        **openapi.describe_refusals(
            *_JUDGED, errors.OffsetMismatch, errors.UploadComplete, errors.UploadRefused
        ),
    },
    openapi_extra=openapi.describe_body("The bytes that follow those there.", protocol.PART),
)
async def append_upload(
    id: Identity, request: Request, service: Service, offset: protocol.UploadOffset
) -> Response:
    """The bytes that fill `Upload-Length` are the last ones: `Content-Location` is the URL of the
    stored file, and a file that PUT would refuse is refused as PUT refuses it. Bytes of a request
    that is cut off stay. A client that can send nothing but GET and POST names PATCH, HEAD or
    DELETE in `X-HTTP-Method-Override`.
    """
    check_media_type(request, protocol.PART)
    upload = await asyncio.to_thread(resumable_uploads.find_upload, service.records, id)
    receiver.check_scope(service, upload.purpose)
    if not (upload.has_ended or upload.complete):
        upload = await receiver.append_body(request, service, upload, offset)
    elif upload.is_refused or protocol.has_body(request) or offset != upload.offset:
        raise receiver.make_complete_refusal(upload)
    else:  # by who has not heard the answer to the last bytes
        upload = await receiver.finish_upload(request, service, upload)
    return Response(None, 204, protocol.describe_state(upload))


@router.delete(
    "/{id}",
    operation_id="delete_upload",
    summary="Give an upload up",
    status_code=204,
    response_class=Response,
    response_description="Its bytes are deleted. What it became, if it was stored, stays.",
    responses=openapi.describe_refusals(
        errors.NotFound, errors.Conflict, errors.UnsupportedVersion
    ),
)
async def delete_upload(id: Identity, service: Service) -> None:
    """Another request that sends bytes of the upload is cut off."""
    upload = await asyncio.to_thread(resumable_uploads.find_upload, service.records, id)
    await service.endings.give_up(id)
    async with service.turns.taken(service, upload) as turn:
        await asyncio.to_thread(resumable_uploads.delete_upload, service.records, id)
        turn.file.delete()
        service.turns.forget_hash(id)
        await completion.forget_staged(service, turn.upload)


@router.options(
    "",
    operation_id="discover_uploads",
    summary="Ask what of tus is spoken",
    status_code=204,
    response_class=Response,
    response_description="The version, extensions and the largest size.",
    responses={
        204: openapi.describe_headers(
            "Tus-Resumable", "Tus-Version", "Tus-Extension", "Tus-Max-Size"
        )
    },
)
async def discover_uploads() -> Response:
    """`Tus-Version`, `Tus-Extension` and `Tus-Max-Size`."""
    return Response(None, 204, protocol.describe_protocol())


@router.post(
    "/{id}/parts",
    operation_id="place_parts",
    summary="Ask where an upload's parts are sent",
    response_description="The next parts, or that all are there.",
    responses=openapi.describe_refusals(
        errors.NotFound,
        errors.Conflict,
        errors.BodyTooLarge,
        errors.UploadRefused,
        errors.StoreUnavailable,
    ),
)
async def place_parts(id: Identity, request: Request, service: Service) -> UploadParts:
    """Send a file to the object store itself, in place of `PATCH`, where objects lie in an
    S3-compatible store that clients reach: begin the upload, ask here, PUT each part to its URL, in
    any order and several at a time, and ask again until it is `complete`. Parts that were sent
    stay: a repeated request, also from another machine, is answered with the rest alone. 409 where
    this is not offered: append with PATCH.
    """
    upload = await asyncio.to_thread(resumable_uploads.find_upload, service.records, id)
    receiver.check_scope(service, upload.purpose)
    receiver.check_not_refused(upload)
    length = upload.length
    if not (upload.complete or upload.has_ended):
        missing = await _find_missing(request, service, upload)
        if missing:
            staged = length - sum(part.bytes for part in missing)
            parts = await asyncio.to_thread(_sign_parts, service, id, missing[:URLS_AT_ONCE])
            return UploadParts(length=length, staged=staged, complete=False, parts=parts)
        await asyncio.to_thread(resumable_uploads.note_complete, service.records, id)
        upload = await asyncio.to_thread(resumable_uploads.find_upload, service.records, id)
    upload = await receiver.store_complete(request, service, upload)
    return UploadParts(length=length, staged=upload.staged, complete=True, parts=[])


async def _find_missing(
    request: Request, service: AppParts, upload: UnfinishedUpload
) -> list[FilePart]:
    """The parts that the store lacks. What it has got since counts among the team's bytes."""
    meter = find_meter(request)
    if meter.most is not None and upload.length - upload.staged > meter.most:
        raise errors.BodyTooLarge(f"your team may send {meter.most:,} bytes more, and not this")
    missing = await asyncio.to_thread(staged_uploads.find_missing_parts, service, upload)
    staged = upload.length - sum(part.bytes for part in missing)
    meter.received = max(0, staged - upload.staged)
    if not await asyncio.to_thread(
        resumable_uploads.note_staged_bytes, service.records, upload, staged
    ):
        raise resumable_uploads.upload_not_found(upload.id)
    return missing


def _sign_parts(service: AppParts, identity: str, parts: list[FilePart]) -> list[UploadPart]:
    upload = resumable_uploads.find_upload(service.records, identity)
    until = moment(time.time() + staged_uploads.URL_SECONDS)
    return [
        UploadPart(
            **vars(part), url=staged_uploads.sign_part_url(service, upload, part), expires_at=until
        )
        for part in parts
    ]
