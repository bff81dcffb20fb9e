"""/v1/datasets: add, list and read immutable versions of datasets."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi import Path as InPath
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
from service.contract.formats.bundles import plain_tar, stored
from service.contract.formats.bundles.content import Content
from service.http import openapi
from service.http.dependencies import Running, Service
from service.http.entrance.uploads import Early, judged, receive
from service.http.routers.parameters import Cursor, Digits
from service.runs import search
from service.stored import datasets, versions
from service.stored.versions import Arrived

router = APIRouter(prefix="/v1/datasets", tags=["datasets"])
_LINKED = openapi.links("name", "get_dataset")
_TAR = Early("beginning", lambda _: plain_tar.BLOCK)
_OF_FILES = (".tar", ".gz", ".tgz", ".zip", ".json", ".jsonl")
LINES = "application/x-ndjson"
Reference = Annotated[
    str, InPath(description="`name` or `name@version`.", examples=["flickr8k@v1"])
]


@router.put(
    "/{name}",
    operation_id="upload_dataset",
    summary="Upload a version of a dataset",
    response_model=DatasetOut,
    response_description="A version with this content exists already: this one.",
    responses={
        200: _LINKED,
        201: {"model": DatasetOut, "description": "A new version.", **_LINKED},
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
    """Every line of `captions.jsonl` is checked at once; errors name line and field. A version is
    the content of its captions, features and images: in another tar they are the same version.
    """
    _check_name(name)
    blobs = service.blobs
    async with receive(request, blobs, _TAR) as (upload, _):
        with blobs.derived.new() as images, blobs.derived.new() as captions:
            path = str(upload.path)
            facts = await judged(request, "dataset", path=path, images=str(images))
            content = await _content(request, path, captions)
            arrived = Arrived(upload, facts, content, captions, images)
            await _tell_earlier(request, service, name, arrived)
            records = service.records
            answer, new = await asyncio.to_thread(versions.store, records, blobs, name, arrived)
    return JSONResponse(answer.model_dump(), 201 if new else 200)


def _check_name(name: str) -> None:
    """Raise for a file's name: curl adds it to an address that ends with a slash."""
    if name.lower().endswith(_OF_FILES):
        raise InvalidRequest(
            f"{name} is the name of a file, and a dataset is called as flickr8k is: curl adds the "
            "file's name to an address that ends with /",
            [("/path/name", f"expected a name without {', '.join(_OF_FILES)} at its end")],
        )


async def _tell_earlier(request: Request, service: Running, name: str, arrived: Arrived) -> None:
    """Note the content of earlier versions that may be this one, or have its captions."""
    records, blobs = service.records, service.blobs
    splits = arrived.facts["splits"]
    for digest in await asyncio.to_thread(versions.untold, records, name, splits):
        with suppress(BlobMissing, BlobDamaged, InvalidBundle):  # it can be no other version
            content = arrived.content
            if digest != arrived.upload.digest:
                path = await asyncio.to_thread(blobs.path, digest)
                content = await _content(request, str(path))
            await asyncio.to_thread(versions.tell, records, digest, content)


async def _content(request: Request, path: str, captions: Path | None = None) -> Content:
    copy = None if captions is None else str(captions)
    return Content(**await judged(request, "content", path=path, captions=copy))


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
    if accept is not None and LINES in accept:
        path = datasets.captions_path(service.records, service.blobs, name)
        return StreamingResponse(stored.captions_of(path), media_type=LINES)
    return datasets.get(service.records, name)
