"""/v1/evaluations/{id}/…: scores, captions, tokens, events of one; /v1/labels: those in use."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import StreamingResponse

from prescore.models.captions import CaptionPage, CocoCaption, Tokens
from prescore.models.comparisons import CaptionDrops
from prescore.models.evaluations import LabelList
from prescore.models.metrics import PregenScores
from prescore.models.runs import EndEvent, ScoresEvent, TaskEvent
from service.contract import errors, limits
from service.contract.api.field_types import DatasetFilter, SortingName
from service.http import openapi, responses
from service.http.dependencies import AppParts, Service
from service.http.paths import IMAGE, ImageName
from service.http.responses import stream_paced
from service.http.routers.request_parameters import (
    Accept,
    Cursor,
    Digits,
    EvaluationIdentity,
    LastEventId,
    Number,
    read_event_number,
)
from service.http.service_route import ServiceRoute
from service.runs import annotations, caption_drops, captions, evaluations, run_store
from service.runs.caption_search import CaptionQuery

router = APIRouter(prefix="/v1", tags=["evaluations"], route_class=ServiceRoute)
_KEEP_ALIVE_SECONDS = 15.0
_COLUMNS = "application/octet-stream"
_EVENT = {
    "oneOf": [
        openapi.describe_event("task", TaskEvent),
        openapi.describe_event("scores", ScoresEvent),
        openapi.describe_event("end", EndEvent),
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
    invented: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=_TEXT,
            description="Only those that have this word, which no reference of the image has: one "
            "of `invented` of the caption. Words are counted in captions and references of at most "
            "20,000,000 characters.",
        ),
    ] = None,
    missed: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=_TEXT,
            description="Only those that lack this word of the nearest reference: one of `missed` "
            "of the caption.",
        ),
    ] = None,
) -> CaptionQuery:
    return CaptionQuery(sort, search, image, at_least, at_most, invented, missed)


def _refuse(wanted: CaptionQuery) -> None:
    """Raise for what `format=columns` does not take."""
    if wanted.given:
        raise errors.InvalidRequest(
            "format=columns has all captions, in the dataset's order: leave out "
            f"{' and '.join(wanted.given)}, or ask for a page, for CSV or for format=coco",
            [(f"/query/{name}", "not with format=columns") for name in wanted.given],
        )


_Wanted = Annotated[CaptionQuery, Depends(_wanted)]


@router.get(
    "/evaluations/{id}/pregen",
    operation_id="get_pregen_scores",
    summary="Every pre-gen score",
    responses=openapi.describe_refusals(errors.NotFound),
)
def get_pregen_scores(id: EvaluationIdentity, service: Service) -> PregenScores:
    """All pre-gen scores that are computed so far, in the shape of the evaluation's `scores`."""
    return PregenScores(scores=evaluations.read_pregen_scores(service, id))


@router.get(
    "/evaluations/{id}/drops",
    operation_id="get_caption_drops",
    summary="The images that fell most against a gate's baseline",
    responses=openapi.describe_refusals(errors.NotFound),
)
def get_caption_drops(id: EvaluationIdentity, service: Service) -> CaptionDrops:
    """Up to three images with both captions and their scores by the metric of a gate, from what is
    stored: nothing is computed. Reports of gates show them.
    """
    return caption_drops.find_caption_drops(service, evaluations.get_evaluation(service, id))


@router.get(
    "/evaluations/{id}/captions",
    operation_id="list_captions",
    summary="Every caption with its own scores",
    response_model=CaptionPage | list[CocoCaption],
    response_description="A page; all that are asked for with `format=coco` in COCO's results "
    "format, with `Accept: text/csv` as CSV, a column for each score; with "
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
        **openapi.describe_refusals(errors.InvalidCursor, *openapi.STORED, errors.UnknownMetric),
    },
)
def list_captions(
    id: EvaluationIdentity,
    service: Service,
    wanted: _Wanted,
    accept: Accept = None,
    format: Annotated[
        Literal["coco", "columns"] | None,
        Query(
            description="One file: `coco` without scores, for COCO's tools; `columns` with all "
            "captions and all data."
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=10_000), Digits] = 1000,
    cursor: Cursor = None,
) -> Response | CaptionPage:
    """The submitted captions, or those decoded from the checkpoint (404 until they exist), in the
    dataset's order, with the words in which they differ from references of their image. `sort`,
    `search`, `image`, `invented`, `missed` and bounds are of pages, of CSV and of COCO's format.
    """
    if format == "coco":
        coco = captions.stream_coco_captions(service, id, wanted)
        return StreamingResponse(stream_paced(coco), media_type="application/json")
    if format == "columns":
        _refuse(wanted)
        columns = captions.stream_caption_columns(service, id)
        return StreamingResponse(stream_paced(columns), media_type=_COLUMNS)
    if responses.wants_csv(accept):
        return responses.stream_csv(captions.build_caption_table(service, id, wanted))
    return captions.build_caption_page(service, id, limit, cursor, wanted)


@router.get(
    f"/evaluations/{{id}}/tokens/{IMAGE}",
    operation_id="get_tokens",
    summary="The references of one image, word by word",
    responses=openapi.describe_refusals(*openapi.STORED),
)
def get_tokens(
    id: EvaluationIdentity,
    image: ImageName,
    service: Service,
) -> Tokens:
    """The log-probability and rank of each reference token, and the model's most probable word
    there (404 until the columns are computed). If the evaluation asked for more `tokens`, that is
    shown once its task `tokens` is done.
    """
    return captions.read_reference_tokens(service, id, image)


@router.get(
    "/evaluations/{id}/events",
    operation_id="stream_events",
    summary="Listen to an evaluation",
    response_class=StreamingResponse,
    response_description="Server-sent events with increasing ids, as in the schema.",
    responses={
        200: {"content": {"text/event-stream": {"schema": _EVENT}}},
        204: {"description": "There is no event after Last-Event-ID, and never will be."},
        **openapi.describe_refusals(errors.NotFound),
    },
)
async def stream_events(
    id: EvaluationIdentity, service: Service, last_event_id: LastEventId = None
) -> Response:
    """Events `task`, `scores` and, as the last one, `end`. After a lost connection, go on with
    `Last-Event-ID`; comments keep a connection without events open.
    """
    version, over = await asyncio.to_thread(
        run_store.read_state, service.records, id, evaluations.KIND
    )
    after = min(read_event_number(last_event_id), version)
    if over and not await asyncio.to_thread(run_store.read_events, service.records, id, after):
        return Response(status_code=204)
    return responses.stream_events(_stream(service, id, after))


# sse-starlette would save the line that writes an event (which is 16 times as fast) but changes
# uvicorn's Server when it is imported. FastAPI's EventSourceResponse takes only generators, whose
# status is 200 whatever they raise; here it may be 204 or 404.
async def _stream(service: AppParts, identity: str, after: int) -> AsyncIterator[str]:
    while True:
        version, _ = await asyncio.to_thread(
            run_store.read_state, service.records, identity, evaluations.KIND
        )
        found = await asyncio.to_thread(run_store.read_events, service.records, identity, after)
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


@router.get(
    "/labels",
    operation_id="list_labels",
    summary="List the labels that are in use",
)
def list_labels(
    service: Service,
    dataset: Annotated[
        DatasetFilter | None,
        Query(
            description="Only of evaluations on this dataset, or this split of it: "
            "`name[@version][/split]`."
        ),
    ] = None,
) -> LabelList:
    """Names and values of the labels that the team's latest 5,000 evaluations have, those of the
    latest evaluation first: up to 100 names, and up to 100 values of each. Older evaluations are
    not counted.
    """
    return annotations.list_used_labels(service, dataset)
