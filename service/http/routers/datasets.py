"""/v1/datasets: add, list and read immutable versions of datasets."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import JSONResponse, StreamingResponse

from prescore.models.datasets import Dataset, DatasetPage
from service.contract.api.field_types import DatasetName
from service.contract.errors import (
    BlobDamaged,
    BlobMissing,
    BodyTooLarge,
    DiskFull,
    InvalidBundle,
    InvalidCursor,
    InvalidRequest,
    NotFound,
    ServiceUnavailable,
    StoreUnavailable,
)
from service.contract.formats.bundles import files
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance import bundles
from service.http.entrance.access import ScopedRoute
from service.http.entrance.uploads import judged, receive
from service.http.routers.parameters import Cursor, Digits
from service.runs import search
from service.stored import datasets

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=ScopedRoute)
_LINKED = openapi.links("name", "get_dataset")
LINES = "application/x-ndjson"
Reference = Annotated[
    str, InPath(description="`name` or `name@version`.", examples=["flickr8k@v1"])
]


@router.put(
    "/{name}",
    operation_id="upload_dataset",
    summary="Upload a version of a dataset",
    response_model=Dataset,
    response_description="A version with this content exists already: this one.",
    responses={
        200: _LINKED,
        201: {"model": Dataset, "description": "A new version.", **_LINKED},
        **openapi.refusals(
            BodyTooLarge,
            InvalidBundle,
            InvalidRequest,
            StoreUnavailable,
            ServiceUnavailable,
            DiskFull,
        ),
    },
    openapi_extra=openapi.body(
        "A bundle: a tar with `captions.jsonl` and, if wanted, `features.safetensors`, `images/…`.",
        "application/x-tar",
        "application/octet-stream",
    ),
)
async def put(name: DatasetName, request: Request, service: Service) -> Response:
    """Every line of `captions.jsonl` is checked at once; errors name line and field. A version is
    the content of its captions, features and images: in another tar they are the same version.
    """
    bundles.check_name(name)
    async with receive(request, service.blobs, bundles.TAR) as (upload, _):
        answer, new = await bundles.keep(service, name, upload, partial(judged, request))
    return JSONResponse(answer.model_dump(mode="json"), 201 if new else 200)


@router.get(
    "",
    operation_id="list_datasets",
    summary="List the datasets",
    responses=openapi.refusals(InvalidCursor, InvalidRequest),
)
def every(
    service: Service,
    limit: Annotated[int, Query(ge=1, le=1000), Digits] = 200,
    cursor: Cursor = None,
) -> DatasetPage:
    """Every version of every dataset by name, the latest of a name first."""
    after = None
    if cursor is not None:
        last, version = search.read_cursor("datasets", cursor, str, int)
        after = last, version
    items, more = datasets.list_versions(service.records, limit, after)
    following = None
    if more:
        position = items[-1].name, int(items[-1].version[1:])
        following = search.write_cursor("datasets", *position)
    return DatasetPage(items=items, next=following)


@router.get(
    "/{name}",
    operation_id="get_dataset",
    summary="Describe a dataset, or read its captions",
    response_model=Dataset,
    response_description="With `Accept: application/x-ndjson`: its captions.jsonl.",
    responses={
        200: {"content": {LINES: {"schema": {"type": "string"}}}},
        **openapi.refusals(NotFound, BlobMissing, BlobDamaged, StoreUnavailable),
    },
)
def get(
    name: Reference,
    service: Service,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response | Dataset:
    """`name` is the latest version, `name@v1` a certain one."""
    if accept is not None and LINES in accept:
        path = datasets.find_captions_file(service.records, service.blobs, name)
        return StreamingResponse(files.read_captions_in_chunks(path), media_type=LINES)
    return datasets.read_dataset(service.records, name)
