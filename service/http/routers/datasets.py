"""/v1/datasets: add, list and read immutable versions of datasets."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from service.contract.api.data import DatasetOut, DatasetPage
from service.contract.api.texts import DatasetName
from service.contract.errors import (
    BlobDamaged,
    BlobMissing,
    DiskFull,
    InvalidBundle,
    InvalidRequest,
    NotFound,
    StoreUnavailable,
    TooLarge,
)
from service.contract.formats import bundles
from service.http import openapi
from service.http.dependencies import Service
from service.http.uploads import receive
from service.stored import datasets

router = APIRouter(prefix="/v1/datasets", tags=["datasets"])
MAX_BYTES = 50_000_000_000
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
        **openapi.refusals(TooLarge, InvalidBundle, InvalidRequest, StoreUnavailable, DiskFull),
    },
    openapi_extra=openapi.body(
        "A bundle: a tar with `captions.jsonl` and, if wanted, `features.safetensors`, `images/…`.",
        "application/x-tar",
        "application/octet-stream",
    ),
)
async def put(name: DatasetName, request: Request, service: Service) -> Response:
    """Every line of `captions.jsonl` is checked at once; errors name line and field."""
    async with receive(request, service.blobs, MAX_BYTES) as upload:
        facts = await asyncio.to_thread(datasets.judge, upload.path)
        digest = await asyncio.to_thread(upload.commit)
    answer, new = await asyncio.to_thread(datasets.add, service.records, name, digest, facts)
    return JSONResponse(answer.model_dump(), 201 if new else 200)


@router.get(
    "",
    operation_id="list_datasets",
    summary="List the datasets",
    responses=openapi.refusals(),
)
def every(service: Service) -> DatasetPage:
    """Every version of every dataset, the latest of a name first."""
    return DatasetPage(items=datasets.latest(service.records), next=None)


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
