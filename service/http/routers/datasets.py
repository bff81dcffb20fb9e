"""/v1/datasets: add, list and read immutable versions of datasets."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from service.contract.api.data import DatasetOut, DatasetPage
from service.contract.api.texts import DatasetName
from service.contract.errors import (
    BlobDamaged,
    BlobMissing,
    DiskFull,
    InvalidBundle,
    InvalidCursor,
    InvalidRequest,
    NotFound,
    StoreUnavailable,
    TooLarge,
    Unavailable,
)
from service.contract.formats import bundles
from service.contract.formats.bundles import plain_tar
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.uploads import Early, judged, receive
from service.http.routers.parameters import Cursor, Digits
from service.runs import search
from service.stored import datasets

router = APIRouter(prefix="/v1/datasets", tags=["datasets"])
_TAR = Early("beginning", lambda _: plain_tar.BLOCK)
LINES = "application/x-ndjson"
Reference = Annotated[str, Path(description="`name` or `name@version`.", examples=["flickr8k@v1"])]


@router.put(
    "/{name}",
    operation_id="upload_dataset",
    summary="Upload a version of a dataset",
    response_model=DatasetOut,
    response_description="A version with these bytes exists already: this one.",
    responses={
        201: {"model": DatasetOut, "description": "A new version."},
        **openapi.refusals(
            TooLarge, InvalidBundle, InvalidRequest, StoreUnavailable, Unavailable, DiskFull
        ),
    },
    openapi_extra=openapi.body(
        "A bundle: a tar with `captions.jsonl` and, if wanted, `features.safetensors`, `images/…`.",
        "application/x-tar",
        "application/octet-stream",
    ),
)
async def put(name: DatasetName, request: Request, service: Service) -> Response:
    """Every line of `captions.jsonl` is checked at once; errors name line and field."""
    blobs = service.blobs
    async with receive(request, blobs, _TAR) as (upload, _):
        with blobs.derived.new() as images:
            paths = {"path": str(upload.path), "images": str(images)}
            facts = await judged(request, "dataset", **paths)
            digest = await asyncio.to_thread(upload.commit)
            await asyncio.to_thread(datasets.keep_images, blobs, images, digest)
    answer, new = await asyncio.to_thread(datasets.add, service.records, name, digest, facts)
    return JSONResponse(answer.model_dump(), 201 if new else 200)


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
    items, more = datasets.page(service.records, limit, after)
    following = None
    if more:
        position = items[-1].name, int(items[-1].version[1:])
        following = search.write_cursor("datasets", *position)
    return DatasetPage(items=items, next=following)


@router.get(
    "/{name}",
    operation_id="get_dataset",
    summary="Describe a dataset, or read its captions",
    response_model=DatasetOut,
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
) -> Response | DatasetOut:
    """`name` is the latest version, `name@v1` a certain one."""
    found = datasets.get(service.records, name)
    if accept is not None and LINES in accept:
        chunks = bundles.captions_of(service.blobs.path(found.digest))
        return StreamingResponse(chunks, media_type=LINES)
    return found
