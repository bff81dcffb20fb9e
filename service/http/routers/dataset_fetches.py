"""/v1/datasets/{name}/fetch: a dataset that the service fetches from a URL."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from threading import Event

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from prescore.models.datasets import Dataset
from service.contract import errors
from service.contract.api.field_types import DatasetName
from service.contract.api.urls import DatasetUrlRequest
from service.engine.blobs import BlobUpload
from service.http import openapi, uploads
from service.http.access import find_meter
from service.http.dependencies import AppParts, Service
from service.http.loop_limits import LoopLimit
from service.http.routers.datasets import LINKS
from service.http.service_route import ServiceRoute
from service.http.uploads import EarlyQuestion, check_digest, judge_upload, wait_until_left
from service.outbound.client import OutboundClient
from service.stored import judges

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=ServiceRoute)


@router.post(
    "/{name}/fetch",
    operation_id="fetch_dataset",
    summary="Let the service fetch a version of a dataset",
    response_model=Dataset,
    response_description="A version with this content exists already: this one.",
    responses=openapi.describe_storing(
        Dataset,
        "A new version.",
        LINKS,
        *(errors.UrlRefused, errors.UrlFailed, errors.DigestMismatch, errors.InvalidBundle),
        *(errors.Conflict, errors.Overloaded),
    ),
)
async def fetch_dataset(
    name: DatasetName, asked: DatasetUrlRequest, request: Request, service: Service
) -> Response:
    """The tar at a URL, judged and stored as PUT does. Only where the operator has set
    `PRESCORE_DATASETS_BY_URL=on`; by https, from public addresses, with no redirects, at most 5 GB
    in at most 10 minutes. The answer comes when it is stored; who leaves ends it.
    """
    uploads.check_dataset_name(name)
    async with fetch_upload(request, service, asked.url, uploads.DATASET_BEGINNING) as upload:
        check_digest(upload.digest, asked.digest)
        answer, new = await uploads.store_dataset(
            service, name, upload, partial(judge_upload, request)
        )
    return JSONResponse(answer.model_dump(mode="json"), 201 if new else 200)


MOST_BYTES = 5_000_000_000  # all of COCO with features of one vector an image is a tenth of it
SECONDS = 600.0  # in all: 8 MB a second for the largest
AT_ONCE = 2  # each holds a thread, perhaps for all of that time
_SLOTS = LoopLimit(AT_ONCE)
_THREADS = ThreadPoolExecutor(AT_ONCE, "fetches datasets")  # others have threads of their own


@asynccontextmanager
async def fetch_upload(
    request: Request, service: AppParts, url: str, early: EarlyQuestion
) -> AsyncIterator[BlobUpload]:
    """An upload with all bytes of what is there, which the caller commits; who asks and leaves ends
    it.
    """
    check_fetch(service.outgoing, url)
    if _SLOTS.locked():
        raise errors.Overloaded(
            f"{AT_ONCE} datasets are being fetched, as many as may be; try again"
        )
    meter = find_meter(request)
    most = MOST_BYTES if meter.most is None else min(MOST_BYTES, meter.most)
    async with _SLOTS:
        with service.blobs.upload() as upload:
            left = Event()
            leaving = asyncio.ensure_future(wait_until_left(request, left))
            loop = asyncio.get_running_loop()
            fetching = loop.run_in_executor(
                _THREADS, _fetch, service.outgoing, url, most, upload, early, left
            )
            try:
                await asyncio.shield(fetching)
            finally:
                left.set()
                leaving.cancel()
                with suppress(Exception):  # the thread still writes, if this task was canceled
                    await fetching
                meter.received = upload.size
            yield upload


def check_fetch(outgoing: OutboundClient, url: str) -> None:
    """UrlRefused for what can never be fetched, Conflict where nothing is; nothing is looked up."""
    if not outgoing.fetches:
        raise errors.Conflict(
            "this service fetches no datasets: its operator has not set PRESCORE_DATASETS_BY_URL=on"
        )
    try:
        outgoing.check(url)
    except errors.UrlRefused as error:
        raise errors.UrlRefused(error.detail, pointer="/url") from None


def _fetch(
    outgoing: OutboundClient,
    url: str,
    most: int,
    upload: BlobUpload,
    early: EarlyQuestion,
    left: Event,
) -> None:
    is_judged = False
    with outgoing.fetched(url, {}, most, SECONDS) as chunks:
        for chunk in chunks:
            if left.is_set():
                raise errors.InvalidRequest("the connection was cut before the dataset was fetched")
            upload.write(chunk)
            if not is_judged and upload.size >= early.needed(b""):
                _judge(upload, early, left)
                is_judged = True
    _judge(upload, early, left)


def _judge(upload: BlobUpload, early: EarlyQuestion, left: Event) -> None:
    asked = {"path": str(upload.path), "bytes": None}
    judges.get_judges().ask(early.question, left.is_set, **asked).result()
