"""/v1/evaluations/{id}/…: every score, caption and token of an evaluation, and its events."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import StreamingResponse

from prescore.models.captions import CaptionPage, CocoCaption, Tokens
from prescore.models.metrics import PregenScores
from prescore.models.runs import EndEvent, ScoresEvent, TaskEvent
from service.contract import limits
from service.contract.api.field_types import SortingName
from service.contract.errors import (
    BlobDamaged,
    BlobMissing,
    InvalidCursor,
    InvalidRequest,
    NotFound,
    ServiceUnavailable,
    StoreUnavailable,
    UnknownMetric,
)
from service.http import csv_answers, openapi
from service.http.dependencies import Running, Service
from service.http.entrance.access import ScopedRoute
from service.http.image_names import IMAGE, ImageName
from service.http.preferences import event_number
from service.http.routers.parameters import Cursor, Digits, Identity, LastEventId, Number
from service.http.streaming import paced
from service.runs import base, captions, evaluations
from service.runs.browsing.chosen import Wanted

router = APIRouter(prefix="/v1/evaluations/{id}", tags=["evaluations"], route_class=ScopedRoute)
_KEEP_ALIVE_SECONDS = 15.0
_COLUMNS = "application/octet-stream"
_EVENT = {
    "oneOf": [
        openapi.event("task", TaskEvent),
        openapi.event("scores", ScoresEvent),
        openapi.event("end", EndEvent),
    ]
}
_TEXT = 200  # characters
_Bound = Annotated[float | None, Number]


def _wanted(
    sort: Annotated[
        SortingName | None,
        Query(
            max_length=_TEXT,
            description="A metric by whose scores of single captions they are sorted, the lowest "
            "first; after a `-`, the highest first. Equal ones are in the dataset's order, those "
            "without a score at the end.",
            examples=["-cider_d"],
        ),
    ] = None,
    search: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=_TEXT,
            description="Only those that contain this text, in the caption or in the image's name, "
            "in upper or lower case.",
        ),
    ] = None,
    image: Annotated[
        str | None,
        Query(
            max_length=limits.IMAGE,
            description="Only the caption of this image, by its name or id; 404 if the split has "
            "no such image.",
        ),
    ] = None,
    at_least: Annotated[
        _Bound,
        Query(
            allow_inf_nan=False,
            description="Only those whose score by the metric of `sort` is not lower.",
        ),
    ] = None,
    at_most: Annotated[
        _Bound,
        Query(
            allow_inf_nan=False,
            description="Only those whose score by the metric of `sort` is not higher.",
        ),
    ] = None,
) -> Wanted:
    return Wanted(sort, search, image, at_least, at_most)


def _refuse(wanted: Wanted, format: str) -> None:
    """Raise for what a format does not take."""
    if wanted.given:
        raise InvalidRequest(
            f"format={format} has all captions, in the dataset's order: leave out "
            f"{' and '.join(wanted.given)}, or ask for a page or for CSV",
            [(f"/query/{name}", f"not with format={format}") for name in wanted.given],
        )


_Wanted = Annotated[Wanted, Depends(_wanted)]
_STORED = (NotFound, BlobMissing, BlobDamaged, StoreUnavailable, ServiceUnavailable)


@router.get(
    "/pregen",
    operation_id="get_pregen_scores",
    summary="Every pre-gen score",
    responses=openapi.refusals(NotFound),
)
def pregen(id: Identity, service: Service) -> PregenScores:
    """All pre-gen scores that are computed so far, in the shape of the evaluation's `scores`."""
    return PregenScores(scores=evaluations.pregen(service, id))


@router.get(
    "/captions",
    operation_id="list_captions",
    summary="Every caption with its own scores",
    response_model=CaptionPage | list[CocoCaption],
    response_description="A page; with `format=coco` all of them in COCO's results format; with "
    "`Accept: text/csv` all that are asked for as CSV, a column for each score; with "
    "`format=columns` one safetensors file: `captions/METRIC` (N), `statistics/FAMILY/…` (N, …), "
    "from which corpus scores are computed, and as JSON in its metadata `images`, `captions` and "
    "`signatures`.",
    responses={
        200: {
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                _COLUMNS: {"schema": {"type": "string", "format": "binary"}},
            }
        },
        **openapi.refusals(InvalidCursor, *_STORED, InvalidRequest, UnknownMetric),
    },
)
def list_captions(
    id: Identity,
    service: Service,
    wanted: _Wanted,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
    format: Annotated[
        Literal["coco", "columns"] | None,
        Query(
            description="All captions in one file: `coco` without scores, for COCO's tools; "
            "`columns` with all data."
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=10_000), Digits] = 1000,
    cursor: Cursor = None,
) -> Response | CaptionPage:
    """The submitted captions, or those decoded from the checkpoint (404 until they exist), in the
    dataset's order. `sort`, `search`, `image` and bounds are of pages and of CSV.
    """
    if format is not None:
        _refuse(wanted, format)
    if format == "coco":
        coco = captions.captions_coco(service, id)
        return StreamingResponse(paced(coco), media_type="application/json")
    if format == "columns":
        columns = captions.captions_columns(service, id)
        return StreamingResponse(paced(columns), media_type=_COLUMNS)
    if csv_answers.is_wanted(accept):
        return csv_answers.streamed(captions.captions_sheet(service, id, wanted))
    return captions.captions(service, id, limit, cursor, wanted)


@router.get(
    f"/tokens/{IMAGE}",
    operation_id="get_tokens",
    summary="The references of one image, word by word",
    responses=openapi.refusals(*_STORED),
)
def tokens(
    id: Identity,
    image: ImageName,
    service: Service,
) -> Tokens:
    """The log-probability and rank of each reference token, and the model's most probable word
    there (404 until the columns are computed). If the evaluation asked for more `tokens`, that is
    shown once its task `tokens` is done.
    """
    return captions.tokens(service, id, image)


@router.get(
    "/events",
    operation_id="stream_events",
    summary="Listen to an evaluation",
    response_class=StreamingResponse,
    response_description="Server-sent events with increasing ids, as in the schema.",
    responses={
        200: {"content": {"text/event-stream": {"schema": _EVENT}}},
        204: {"description": "There is no event after Last-Event-ID, and never will be."},
        **openapi.refusals(NotFound),
    },
)
async def events(id: Identity, service: Service, last_event_id: LastEventId = None) -> Response:
    """Events `task`, `scores` and, as the last one, `end`. After a lost connection, go on with
    `Last-Event-ID`; comments keep a connection without events open.
    """
    version, over = await asyncio.to_thread(base.state, service.records, id, evaluations.KIND)
    after = min(event_number(last_event_id), version)
    if over and not await asyncio.to_thread(base.events, service.records, id, after):
        return Response(status_code=204)
    return StreamingResponse(
        _stream(service, id, after),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


# sse-starlette would save the line that writes an event (which is 16 times as fast) but changes
# uvicorn's Server when it is imported. FastAPI's EventSourceResponse takes only generators, whose
# status is 200 whatever they raise; here it may be 204 or 404.
async def _stream(service: Running, identity: str, after: int) -> AsyncIterator[str]:
    while True:
        version, _ = await asyncio.to_thread(
            base.state, service.records, identity, evaluations.KIND
        )
        found = await asyncio.to_thread(base.events, service.records, identity, after)
        for event in found:
            yield f"id: {event.version}\nevent: {event.kind}\ndata: {event.payload}\n\n"
            after = event.version
            if event.kind == "end":
                return
        changed = await service.watcher.changed(identity, version, _KEEP_ALIVE_SECONDS)
        if not await asyncio.to_thread(service.has_valid_key):
            return
        if changed is None:
            yield ": still here\n\n"
