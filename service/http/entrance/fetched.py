"""Bodies that are not sent but fetched from a URL which the request names: written and judged as
what is sent, within bounds of bytes, time and number.
"""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from threading import Event

from fastapi import Request

from service.contract.errors import Conflict, InvalidRequest, Overloaded, UrlRefused
from service.engine.blobs import BlobUpload
from service.http.dependencies import Running
from service.http.entrance.metering import meter_of
from service.http.entrance.uploads import Early
from service.outbound.client import OutboundClient
from service.stored import judges

MOST_BYTES = 5_000_000_000  # all of COCO with features of one vector an image is a tenth of it
SECONDS = 600.0  # in all: 8 MB a second for the largest
AT_ONCE = 2  # each holds a thread, perhaps for all of that time
_SLOTS = asyncio.Semaphore(AT_ONCE)
_THREADS = ThreadPoolExecutor(AT_ONCE, "fetches datasets")  # others have threads of their own


@asynccontextmanager
async def fetched(
    request: Request, service: Running, url: str, early: Early
) -> AsyncIterator[BlobUpload]:
    """An upload with all bytes of what is there, which the caller commits; who asks and leaves ends
    it.
    """
    check(service.outgoing, url)
    if _SLOTS.locked():
        raise Overloaded(f"{AT_ONCE} datasets are being fetched, as many as may be; try again")
    meter = meter_of(request)
    most = MOST_BYTES if meter.most is None else min(MOST_BYTES, meter.most)
    async with _SLOTS:
        with service.blobs.upload() as upload:
            left = Event()
            leaving = asyncio.ensure_future(_leaving(request, left))
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


def check(outgoing: OutboundClient, url: str) -> None:
    """UrlRefused for what can never be fetched, Conflict where nothing is; nothing is looked up."""
    if not outgoing.fetches:
        raise Conflict(
            "this service fetches no datasets: its operator has not set PRESCORE_DATASETS_BY_URL=on"
        )
    try:
        outgoing.check(url)
    except UrlRefused as error:
        raise UrlRefused(error.detail, pointer="/url") from None


def _fetch(
    outgoing: OutboundClient, url: str, most: int, upload: BlobUpload, early: Early, left: Event
) -> None:
    is_judged = False
    with outgoing.fetched(url, {}, most, SECONDS) as chunks:
        for chunk in chunks:
            if left.is_set():
                raise InvalidRequest("the connection was cut before the dataset was fetched")
            upload.write(chunk)
            if not is_judged and upload.size >= early.needed(b""):
                _judge(upload, early, left)
                is_judged = True
    _judge(upload, early, left)


def _judge(upload: BlobUpload, early: Early, left: Event) -> None:
    upload.flush()
    asked = {"path": str(upload.path), "bytes": None}
    judges.get_judges().ask(early.question, left.is_set, **asked).result()


async def _leaving(request: Request, left: Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    left.set()
