"""/v1/inspections: how a file of captions fits a split, before anything is submitted."""

import asyncio
import tempfile
from pathlib import Path, PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import StringConstraints

from prescore.files.captions import SUFFIXES
from prescore.models.captions import CaptionInspection
from service.contract import assets, errors, limits
from service.contract.api.field_types import DatasetReference, PlainName
from service.contract.metrics import catalogue, families
from service.http import openapi
from service.http.dependencies import AppParts, Service
from service.http.loop_limits import LoopLimit
from service.http.service_route import ServiceRoute
from service.http.uploads import check_media_type, judge_upload, read_chunks
from service.stored import datasets

router = APIRouter(prefix="/v1/inspections", tags=["evaluations"], route_class=ServiceRoute)
_TYPE = "application/octet-stream"
_AT_ONCE = LoopLimit(2)  # as judges; each may take .3 GB of memory


@router.post(
    "",
    operation_id="inspect_captions",
    summary="Inspect a file of captions",
    response_model=CaptionInspection,
    response_description="What would be scored.",
    responses=openapi.describe_refusals(
        errors.NotFound,
        errors.BodyTooLarge,
        errors.UnsupportedMedia,
        errors.CaptionsRefused,
        errors.StoreUnavailable,
        errors.DiskFull,
    ),
    openapi_extra=openapi.describe_body(
        "The bytes of a file that `prescore score` reads: COCO's results, JSON Lines, CSV, or "
        "captions by image as pycocoevalcap has them.",
        _TYPE,
    ),
)
async def inspect_captions(
    request: Request,
    service: Service,
    dataset: Annotated[DatasetReference, Query()],
    file: Annotated[
        PlainName,
        StringConstraints(min_length=1, max_length=200),
        Query(
            description="The name of the file: its ending counts where its content may be read in "
            "two ways, and messages have it.",
            examples=["results.json"],
        ),
    ],
) -> Response:
    """The captions in a file, read as by `prescore score`, and how they fit a split. Nothing is
    stored, and no run begins. A file that cannot be read is refused with its first wrong place.
    """
    check_media_type(request, _TYPE)
    pinned = await asyncio.to_thread(datasets.pin_split, service.records, dataset)
    images = await asyncio.to_thread(datasets.find_images_file, service.blobs, pinned)
    ending = PurePath(file).suffix.lower()
    with tempfile.TemporaryDirectory(prefix="prescore-") as folder:
        path = Path(folder) / f"captions{ending if ending in SUFFIXES else ''}"
        await _write_body(request, path)
        asked = {"path": str(path), "name": file, "images": str(images)}
        async with _AT_ONCE:
            found = await judge_upload(
                request, "captions", **asked, split=pinned.split, of=str(pinned)
            )
            text = await asyncio.to_thread(_write_answer, service, found)
    return Response(text, media_type="application/json")


async def _write_body(request: Request, path: Path) -> None:
    with path.open("wb") as body:
        async for chunk in read_chunks(request, limits.BODY_BYTES):
            await asyncio.to_thread(body.write, chunk)


def _write_answer(service: AppParts, found: dict[str, Any]) -> str:
    usual = catalogue.expand_groups(families.list_usual_families())
    metrics = [name for name in usual if assets.explain_missing(name, service.places) is None]
    return CaptionInspection.model_validate({**found, "metrics": metrics}).model_dump_json()
