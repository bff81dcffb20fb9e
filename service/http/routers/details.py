"""/v1/evaluations/{id}/…: every score, caption and token of an evaluation, and its events."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from service.contract.api.captions import CaptionPage, CocoCaption, TokensOut
from service.contract.api.runs import EndEvent, WorkEvent
from service.contract.api.scores import PregenOut, ScoresEvent
from service.contract.errors import (
    BlobDamaged,
    BlobMissing,
    InvalidCursor,
    InvalidRequest,
    NotFound,
    StoreUnavailable,
    Unavailable,
)
from service.http import csv_answers, openapi
from service.http.dependencies import Running, Service
from service.http.entrance.access import ScopedRoute
from service.http.image_names import IMAGE, ImageName
from service.http.preferences import event_number
from service.http.routers.parameters import Cursor, Digits, Identity, LastEventId
from service.http.streaming import paced
from service.runs import base, captions, evaluations
from service.works.keyring.keys import is_valid

router = APIRouter(prefix="/v1/evaluations/{id}", tags=["evaluations"], route_class=ScopedRoute)
_KEEP_ALIVE_SECONDS = 15.0
_COLUMNS = "application/octet-stream"
_EVENT = {
    "oneOf": [
        openapi.event("work", WorkEvent),
        openapi.event("scores", ScoresEvent),
        openapi.event("end", EndEvent),
    ]
}
_STORED = (NotFound, BlobMissing, BlobDamaged, StoreUnavailable, Unavailable)


@router.get(
    "/pregen",
    operation_id="get_pregen_scores",
    summary="Every pre-gen score",
    responses=openapi.refusals(NotFound),
)
def pregen(id: Identity, service: Service) -> PregenOut:
    """All pre-gen scores that are computed so far, in the shape of the evaluation's `scores`."""
    return PregenOut(scores=evaluations.pregen(service, id))


@router.get(
    "/captions",
    operation_id="list_captions",
    summary="Every caption with its own scores",
    response_model=CaptionPage | list[CocoCaption],
    response_description="A page; with `format=coco` all of them in COCO's results format; with "
    "`Accept: text/csv` all of them as CSV, a column for each score; with `format=columns` one "
    "safetensors file: `captions/METRIC` (N), `statistics/FAMILY/…` (N, …), from which corpus "
    "scores are computed, and as JSON in its metadata `images`, `captions` and `signatures`.",
    responses={
        200: {
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                _COLUMNS: {"schema": {"type": "string", "format": "binary"}},
            }
        },
        **openapi.refusals(InvalidCursor, *_STORED, InvalidRequest),
    },
)
def list_captions(
    id: Identity,
    service: Service,
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
    """The submitted captions, or those decoded from the checkpoint (404 until they exist)."""
    if format == "coco":
        coco = captions.captions_coco(service, id)
        return StreamingResponse(paced(coco), media_type="application/json")
    if format == "columns":
        columns = captions.captions_columns(service, id)
        return StreamingResponse(paced(columns), media_type=_COLUMNS)
    if csv_answers.is_wanted(accept):
        return csv_answers.streamed(captions.captions_sheet(service, id))
    return captions.captions(service, id, limit, cursor)


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
) -> TokensOut:
    """The log-probability and rank of each reference token, and the model's most probable word
    there (404 until the columns are computed). If the evaluation asked for more `tokens`, that is
    shown once its work `tokens` is done.
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
    """Events `work`, `scores` and, as the last one, `end`. After a lost connection, go on with
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
        if not await asyncio.to_thread(is_valid, service.records.of_all, service.asker):
            return
        if changed is None:
            yield ": still here\n\n"
