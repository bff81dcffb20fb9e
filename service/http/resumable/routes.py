"""/v1/uploads: files that arrive in several requests."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from service.contract.api.data import UploadOut, UploadPage
from service.contract.api.texts import DatasetName, Digest
from service.contract.errors import (
    Conflict,
    InvalidRequest,
    NotFound,
    OffsetMismatch,
    OtherVersion,
    TooManyUploads,
    UploadComplete,
    UploadRefused,
)
from service.http import openapi
from service.http.dependencies import Running, Service, caller_of
from service.http.resumable import answers, appending, described, fields, finishing
from service.stored.unfinished import rows
from service.stored.unfinished.rows import Unfinished

router = APIRouter(prefix="/v1/uploads", tags=["uploads"], route_class=answers.UploadRoute)
Identity = Annotated[str, Path(description="The last part of the upload's URL.")]


@router.post(
    "",
    operation_id="create_upload",
    summary="Begin an upload that can be resumed",
    status_code=201,
    response_class=Response,
    response_description="Begun; or, if the request had all bytes, stored.",
    responses={
        201: openapi.headers("Location", "Upload-Complete", "Upload-Limit", *described.OF_TUS),
        200: described.ended("All bytes were sent, and were stored already."),
        **openapi.refusals(*described.JUDGED, Conflict, NotFound, TooManyUploads),
    },
    openapi_extra=described.asks(
        "Upload-Complete", "Upload-Length", "Upload-Metadata", "Tus-Resumable"
    ),
)
async def create(
    request: Request,
    service: Service,
    kind: Annotated[
        Literal["checkpoint", "columns", "dataset"] | None,
        Query(description="What the file becomes."),
    ] = None,
    digest: Annotated[
        Digest | None, Query(description="The file's SHA-256; of a dataset's tar, if wanted.")
    ] = None,
    name: Annotated[DatasetName | None, Query(description="The dataset's name.")] = None,
) -> Response:
    """As the IETF's draft says: with `Upload-Complete: ?0`, `Upload-Length` and the query here;
    bytes may be sent along. As tus 1.0 says: with `Tus-Resumable: 1.0.0`, `Upload-Length`, and
    `kind`, `digest` and `name` in `Upload-Metadata`. `Location` is the upload's URL, to which PATCH
    appends. What is sent is judged as PUT judges it, its beginning before the rest has come.
    """
    tus = fields.speaks_tus(request)
    given = {"kind": kind, "digest": digest, "name": name}
    if tus:
        purpose = fields.purpose(fields.metadata(request), "/header/Upload-Metadata")
    else:
        purpose = fields.purpose(given, "/query")
    appending.check_scope(service, purpose)
    complete = fields.flag(request, "Upload-Complete")
    if not tus and complete is None:
        raise fields.wrong("Upload-Complete", "?0 or ?1, or Tus-Resumable", None)
    length = appending.length_of(request, None, 0, is_last=complete is True)
    if tus and length is None:
        raise fields.wrong("Upload-Length", "the bytes of the whole file", None)
    if tus and fields.has_body(request):
        fields.check_type(request, fields.TUS_PART)
    told = request.headers.get("upload-metadata") if tus else None
    upload = await asyncio.to_thread(rows.create, service.records, purpose, length, told)
    place = {"Location": f"/v1/uploads/{upload.id}"}
    if fields.has_body(request) or complete or length == 0:
        upload, outcome = await appending.appended(request, service, upload, complete=complete)
        if outcome is not None:
            return (
                answers.created(outcome, place, upload) if tus else answers.stored(outcome, upload)
            )
    if tus:
        said = {"Upload-Offset": str(upload.received), **fields.expires(upload)}
        return Response(None, 201, {**place, **said})
    return Response(None, 201, {**place, "Upload-Complete": "?0", **fields.limit(upload)})


@router.get(
    "",
    operation_id="list_uploads",
    summary="List unfinished uploads",
    responses=openapi.refusals(InvalidRequest),
)
def every(service: Service, digest: Annotated[Digest | None, Query()] = None) -> UploadPage:
    """Those that have begun and not ended, the latest first. By its digest, a file's upload is
    found again by who has lost its URL.
    """
    found = rows.listed(service.records, digest)
    return UploadPage(items=[rows.out(each) for each in found], next=None)


@router.get(
    "/{id}",
    operation_id="get_upload",
    summary="See an upload",
    responses=openapi.refusals(NotFound),
)
async def get(id: Identity, request: Request, service: Service) -> UploadOut:
    """Where it stands, what it became, or why it was refused: also for who has not heard the answer
    to the last bytes.
    """
    upload = await asyncio.to_thread(rows.find, service.records, id)
    return rows.out(await appending.noticed(request, service, upload))


@router.head(
    "/{id}",
    operation_id="resume_upload",
    summary="Ask where an upload goes on",
    status_code=204,
    response_class=Response,
    response_description="Its offset: send the bytes after it.",
    responses={
        204: openapi.headers(*described.STATE, *described.OF_TUS, "Content-Location"),
        **openapi.refusals(NotFound, Conflict, UploadRefused, OtherVersion),
    },
    openapi_extra=described.asks("Tus-Resumable"),
)
async def head(id: Identity, request: Request, service: Service) -> Response:
    """Whoever sends bytes of it meanwhile is cut off: their connection may be dead without that
    having been noticed.
    """
    upload = await asyncio.to_thread(rows.find, service.records, id)
    if not upload.complete and not upload.has_ended:
        upload = await appending.at_rest(service, upload)
    upload = await appending.noticed(request, service, upload)
    appending.check_not_refused(upload)
    place = {} if upload.location is None else {"Content-Location": upload.location}
    state = fields.state(upload, tus=fields.speaks_tus(request))
    return Response(None, 204, {**state, **place})


@router.patch(
    "/{id}",
    operation_id="append_upload",
    summary="Append to an upload",
    status_code=204,
    response_class=Response,
    response_description="Appended; the upload goes on, or, with tus, is stored.",
    responses={
        200: described.ended("The upload is complete; what it became was stored already."),
        201: described.ended("The upload is complete, and what it became is stored."),
        204: openapi.headers(
            "Upload-Offset", "Upload-Complete", "Content-Location", *described.OF_TUS
        ),
        **openapi.refusals(
            *described.JUDGED, NotFound, Conflict, OffsetMismatch, UploadComplete, UploadRefused
        ),
    },
    openapi_extra={
        **openapi.body("The bytes that follow those there.", fields.PART, fields.TUS_PART),
        **described.asks("Upload-Offset", "Upload-Complete", "Upload-Length", "Tus-Resumable"),
    },
)
async def patch(id: Identity, request: Request, service: Service) -> Response:
    """`Upload-Offset` says where the bytes belong: at the upload's end. As the IETF's draft says:
    `application/partial-upload`, with `Upload-Complete: ?1` where they are the last ones. As tus
    says: `application/offset+octet-stream`; the bytes that fill `Upload-Length` are the last ones.
    The answer to these is what PUT would answer; with tus, 204 and its `Content-Location`. What has
    come of a request that is cut off stays.
    """
    tus = fields.speaks_tus(request)
    fields.check_type(request, fields.TUS_PART if tus else fields.PART)
    upload = await asyncio.to_thread(rows.find, service.records, id)
    appending.check_scope(service, upload.purpose)
    offset, complete = _where(request, tus=tus)
    if upload.has_ended or upload.complete:
        return await _again(request, service, upload, offset)
    upload, outcome = await appending.appended(
        request, service, upload, offset=offset, complete=complete
    )
    if outcome is not None and not tus:
        return answers.stored(outcome, upload)
    said = {"Upload-Offset": str(upload.received)}
    if not tus:
        return Response(None, 204, {**said, "Upload-Complete": "?0", **fields.limit(upload)})
    place = {} if outcome is None else {"Content-Location": outcome.location}
    return Response(None, 204, {**said, **fields.expires(upload), **place})


@router.delete(
    "/{id}",
    operation_id="delete_upload",
    summary="Give an upload up",
    status_code=204,
    response_class=Response,
    response_description="Its bytes are deleted. What it became, if it was stored, stays.",
    responses=openapi.refusals(NotFound, Conflict, OtherVersion),
)
async def delete(id: Identity, service: Service) -> None:
    """Whoever sends bytes of it meanwhile is cut off."""
    upload = await asyncio.to_thread(rows.find, service.records, id)
    await service.endings.give_up(id)
    async with service.turns.taken(service, upload) as turn:
        await asyncio.to_thread(rows.delete, service.records, id)
        turn.file.delete()
        service.turns.forget_hash(id)
        await finishing.forget_staged(service, turn.upload)


@router.options(
    "",
    operation_id="discover_uploads",
    summary="Ask which protocols are spoken",
    status_code=204,
    response_class=Response,
    response_description="Protocols, their versions, and limits.",
    responses={204: openapi.headers("Upload-Limit", "Tus-Resumable")},
)
async def options() -> Response:
    """As both protocols want it: `Accept-Patch` and `Upload-Limit`; `Tus-Version`,
    `Tus-Extension` and `Tus-Max-Size`.
    """
    return Response(None, 204, fields.discovery())


@router.options(
    "/{id}",
    operation_id="discover_upload",
    summary="Ask which protocols an upload speaks",
    status_code=204,
    response_class=Response,
    response_description="Protocols, their versions, and limits.",
    responses={204: openapi.headers("Upload-Limit", "Tus-Resumable")},
)
async def options_of_one(id: Identity) -> Response:  # noqa: ARG001
    """The same for every upload, whether it is there or not."""
    return Response(None, 204, fields.discovery())


@router.post(
    "/{id}",
    operation_id="override_upload",
    summary="Append, ask or give up by POST",
    status_code=204,
    response_class=Response,
    response_description="What the method would answer.",
    responses={
        200: {"description": "What PATCH would answer."},
        201: {"description": "What PATCH would answer."},
        **openapi.refusals(
            *(*described.JUDGED, NotFound, Conflict, OffsetMismatch, UploadComplete, UploadRefused)
        ),
    },
    openapi_extra=described.asks("X-HTTP-Method-Override", "Tus-Resumable"),
)
async def overridden(id: Identity, request: Request, service: Service) -> Response:
    """For clients of tus that can send nothing but GET and POST: `X-HTTP-Method-Override` names
    PATCH, HEAD or DELETE, whose header fields are sent too.
    """
    match request.headers.get("x-http-method-override", "").upper():
        case "PATCH":
            return await patch(id, request, service)
        case "HEAD":
            return await head(id, request, service)
        case "DELETE":
            await delete(id, service)
            return Response(None, 204)
        case found:
            raise fields.wrong("X-HTTP-Method-Override", "PATCH, HEAD or DELETE", found)


def _where(request: Request, *, tus: bool) -> tuple[int, bool | None]:
    offset = fields.number(request, "Upload-Offset")
    complete = None if tus else fields.flag(request, "Upload-Complete")
    if offset is None:
        raise fields.wrong("Upload-Offset", "a whole number", request.headers.get("upload-offset"))
    if complete is None and not tus:
        found = request.headers.get("upload-complete")
        raise fields.wrong("Upload-Complete", "?0 or ?1", found)
    return offset, complete


async def _again(request: Request, service: Running, upload: Unfinished, offset: int) -> Response:
    """The answer to the last bytes for who has not heard it; nothing else can be appended."""
    tus, is_empty = fields.speaks_tus(request), not fields.has_body(request)
    is_known = upload.has_ended and not tus  # the draft: it is refused, and HEAD tells
    if upload.is_refused or is_known or not is_empty or offset != upload.received:
        raise appending.is_complete(upload)
    place = upload.location
    if place is None:
        request.state.upload_complete = not tus
        outcome = await finishing.ended(service, upload, caller_of(request))
        if not tus:
            return answers.stored(outcome, upload)
        place = outcome.location
    said = {"Upload-Offset": str(upload.received), "Content-Location": place}
    return Response(None, 204, said)
