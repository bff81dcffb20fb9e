"""/v1/datasets: versions of datasets, and the pictures and references of their images."""

import hashlib
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.routing import Match
from starlette.types import Scope

from prescore.models.datasets import Dataset, DatasetPage, References
from service.contract import errors
from service.contract.api.changes import DatasetChange
from service.contract.api.field_types import DatasetName
from service.contract.formats.bundles import files
from service.http import openapi, uploads
from service.http.dependencies import Caller, Service
from service.http.paths import IMAGE, ImageName
from service.http.routers.request_parameters import (
    Accept,
    Cursor,
    Digits,
    IfNoneMatch,
    matches_etag,
)
from service.http.service_route import ServiceRoute
from service.http.uploads import judge_upload, receive_upload
from service.retention import upload_deletion
from service.runs import run_lists
from service.stored import datasets, thumbnails

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=ServiceRoute)
LINKS = openapi.describe_links("name", "get_dataset")
NDJSON = "application/x-ndjson"
DatasetReference = Annotated[
    str, InPath(description="`name` or `name@version`.", examples=["flickr8k@v1"])
]


@router.put(
    "/{name}",
    operation_id="upload_dataset",
    summary="Upload a version of a dataset",
    response_model=Dataset,
    response_description="A version with this content exists already: this one.",
    responses=openapi.describe_storing(Dataset, "A new version.", LINKS, errors.InvalidBundle),
    openapi_extra=openapi.describe_body(
        "A bundle: a tar with `captions.jsonl` and, if wanted, `features.safetensors`, `images/…`.",
        "application/x-tar",
        "application/octet-stream",
    ),
)
async def upload_dataset(name: DatasetName, request: Request, service: Service) -> Response:
    """Every line of `captions.jsonl` is checked at once; errors name line and field. A version is
    the content of its captions, features and images: in another tar they are the same version.
    """
    uploads.check_dataset_name(name)
    async with receive_upload(request, service.blobs, uploads.DATASET_BEGINNING) as (upload, _):
        answer, new = await uploads.store_dataset(
            service, name, upload, partial(judge_upload, request)
        )
    return JSONResponse(answer.model_dump(mode="json"), 201 if new else 200)


@router.get(
    "",
    operation_id="list_datasets",
    summary="List the datasets",
    responses=openapi.describe_refusals(errors.InvalidCursor),
)
def list_datasets(
    service: Service,
    limit: Annotated[int, Query(ge=1, le=1000), Digits] = 200,
    cursor: Cursor = None,
) -> DatasetPage:
    """Every version of every dataset by name, the latest of a name first."""
    after = None
    if cursor is not None:
        last, version = run_lists.read_cursor("datasets", cursor, str, int)
        after = last, version
    items, more = datasets.list_versions(service.records, limit, after)
    following = None
    if more:
        position = items[-1].name, int(items[-1].version[1:])
        following = run_lists.write_cursor("datasets", *position)
    return DatasetPage(items=items, next=following)


@router.get(
    "/{name}",
    operation_id="get_dataset",
    summary="Describe a dataset, or read its captions",
    response_model=Dataset,
    response_description="With `Accept: application/x-ndjson`: its captions.jsonl.",
    responses={
        200: {"content": {NDJSON: {"schema": {"type": "string"}}}},
        **openapi.describe_refusals(*openapi.STORED),
    },
)
def get_dataset(
    name: DatasetReference,
    service: Service,
    accept: Accept = None,
) -> Response | Dataset:
    """`name` is the latest version, `name@v1` a certain one."""
    if accept is not None and NDJSON in accept:
        path = datasets.find_captions_file(service.records, service.blobs, name)
        return StreamingResponse(files.read_captions_in_chunks(path), media_type=NDJSON)
    return datasets.read_dataset(service.records, name)


@router.delete(
    "/{name}",
    operation_id="delete_dataset",
    summary="Delete a dataset, or a version of it",
    **openapi.DELETED,
)
def delete_dataset(name: DatasetReference, service: Service) -> Response:
    """`name` is all its versions, `name@v1` a certain one. 409 while there are runs on them, of
    which the first are named. The number of a deleted version is not given again.
    """
    upload_deletion.delete_dataset(service, name)
    return Response(status_code=204)


_WEBP = "image/webp"
_FOR_EVER = "private, max-age=31536000, immutable"  # a version's pictures do not change
_ASK_AGAIN = "private, no-cache"
_SENT = ("ETag", "Cache-Control")


@router.patch(
    "/{name}",
    operation_id="change_dataset",
    summary="Show a dataset's pictures, or hide them",
    responses=openapi.describe_refusals(errors.NotFound, errors.Conflict),
)
def change_dataset(
    name: DatasetReference, change: DatasetChange, service: Service, caller: Caller
) -> Dataset:
    """Change the latest version, or `name@version`. The version, its digest and its scores stay as
    they are.
    """
    return thumbnails.show_pictures(service, name, caller, shown=change.pictures_shown)


@router.get(
    f"/{{name}}/images/{IMAGE}",
    operation_id="get_picture",
    summary="Look at an image",
    response_class=Response,
    response_description="WebP: upright, without metadata; the first frame of an animation.",
    responses={
        200: {
            "content": {_WEBP: {"schema": {"type": "string", "format": "binary"}}},
            **openapi.describe_headers(*_SENT),
        },
        304: {
            "description": "It is unchanged since the `ETag` in `If-None-Match`.",
            **openapi.describe_headers(*_SENT),
        },
        **openapi.describe_refusals(*openapi.STORED),
    },
)
def get_picture(
    name: DatasetReference,
    image: ImageName,
    service: Service,
    caller: Caller,
    size: Annotated[
        Literal["320", "960"], Query(description="Pixels of the longer side, at most.")
    ] = "320",
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The picture is there only if its dataset says `pictures_shown`. 503 while it is made, at the
    first request; 404 also where the picture cannot be decoded. No picture is enlarged.
    """
    content = thumbnails.read_thumbnail(service, name, image, int(size), caller)
    headers = {
        "ETag": f'"{hashlib.sha256(content).hexdigest()}"',
        "Cache-Control": _FOR_EVER if "@" in name else _ASK_AGAIN,
    }
    if matches_etag(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=_WEBP)


_END = "/references"


class _ReferencesRoute(ServiceRoute):
    """An image may be called `a/references`: its picture is asked for with the slash as %2F, which
    the path does not tell from a slash any more.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if not scope.get("raw_path", _END.encode()).endswith(_END.encode()):
            return Match.NONE, {}
        return super().matches(scope)


references_router = APIRouter(
    prefix="/v1/datasets", tags=["datasets"], route_class=_ReferencesRoute
)


@references_router.get(
    f"/{{name}}/images/{IMAGE}{_END}",
    operation_id="get_references",
    summary="Read what people wrote about an image",
    responses=openapi.describe_refusals(*openapi.STORED),
)
def get_references(name: DatasetReference, image: ImageName, service: Service) -> References:
    """The image's references, in the dataset's order. For the picture of an image whose own name
    ends in `/references`, write that slash as `%2F`.
    """
    return thumbnails.read_references(service, name, image)
