"""The routes of every kind of run: submit, list, get, cancel, change, delete."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import BaseModel, create_model

from prescore.models.base import PageOf
from prescore.models.runs import StatusFilter
from service.contract import errors
from service.contract.api.changes import EvaluationChange, RunChange
from service.contract.api.field_types import MOST_METRICS, DatasetFilter, MetricNames
from service.contract.metrics import catalogue
from service.http import openapi
from service.http.dependencies import Caller, Service
from service.http.responses import Metrics
from service.http.routers import run_answers
from service.http.routers.request_parameters import (
    Cursor,
    Digits,
    IdempotencyKey,
    IfNoneMatch,
    Prefer,
    allows_etag,
    make_identity,
    read_idempotency_key,
    read_metric_names,
)
from service.http.service_route import ServiceRoute
from service.retention import run_deletion
from service.runs import annotations, run_lists
from service.runs.annotations import ExpectsVersion
from service.runs.kinds import KindEntry, submit_run
from service.runs.run_lists import RunQuery
from service.runs.run_store import AnyRunKind

_Status = Annotated[
    StatusFilter | None,
    Query(description="Only runs with this status; `unfinished`: queued or running."),
]
_OnDataset = Annotated[
    DatasetFilter | None,
    Query(description="Only runs on this dataset, or this split of it: `name[@version][/split]`."),
]
_Limit = Annotated[int, Query(ge=1, le=200), Digits]
_IfMatch = Annotated[
    str | None,
    Header(description="The `ETag` of the answer that you have seen: 412 if it is another now."),
]
Answering = Callable[..., Response | Coroutine[Any, Any, Response]]


@dataclass(frozen=True)
class RunDescriptions:
    """Names, summaries and descriptions of a kind's routes."""

    many: str  # list_...
    submit: str
    named: str  # after "Get", "Cancel", "Change" and "Delete"
    listed: str  # after "List"
    about: str
    submitted: str = "Submitted: poll for the scores."
    ended: str = "it has ended"  # after "`Prefer: wait=N` was sent, and"
    polled: str = (
        "The run as it is now. `Prefer: wait=N` waits for its end, and with `If-None-Match` for "
        "any change."
    )
    it_is: str = "It is"  # before "unchanged"
    canceled: str = "Stops tasks that no other run needs."
    over: str = "It has ended."
    filtered: str = "The latest first, filtered by dataset and status."


_DESCRIPTIONS = {
    "evaluation": RunDescriptions(
        many="evaluations",
        submit="Submit an evaluation",
        named="an evaluation",
        listed="evaluations",
        about="Score a checkpoint (uploaded before), captions, or columns (uploaded before) with "
        "captions or without, on a split of a dataset. "
        "`Prefer: wait=N` waits for the pre-gen scores, or for the end where there are none. No "
        "score is computed twice.",
        submitted="Submitted: poll or listen for its scores.",
        ended="the pre-gen scores, or the end, came in time",
        polled="Its tasks and scores so far; always 200, also for a failed run. "
        "`Prefer: wait=N` waits for its end, at most N seconds; with `If-None-Match` it is the "
        "long poll: it answers as soon as anything has changed, or 304 after N seconds.",
        canceled="Stops tasks that no other run needs. A run that has ended does not change.",
        filtered="The latest first, filtered by dataset, status and labels.",
    ),
    "comparison": RunDescriptions(
        many="comparisons",
        submit="Compare two evaluations",
        named="a comparison",
        listed="comparisons",
        about="Both must be on the same split with the same captions, whatever the features, and "
        "with scores computed in the same way; else the request is refused, and the error names "
        "the field that differs. The same comparison is computed once.",
    ),
    "probes": RunDescriptions(
        many="probes",
        submit="Probe a dataset",
        named="probes",
        listed="probes",
        about="Score captions of known quality with the metrics: people's captions against other "
        "people's and a system's, captions with frequent or rare words made unknown, with words "
        "swapped or replaced at random, and one sentence for all images. The same table is "
        "computed once.",
        submitted="Submitted: poll for the tables.",
        ended="they have ended",
        it_is="They are",
        over="They have ended.",
    ),
    "training": RunDescriptions(
        many="trainings",
        submit="Train a metric",
        named="a metric's training",
        listed="trainings of metrics",
        about="Train NNEval (how likely a person wrote a caption) on other metrics' scores of "
        "people's captions and of three or more captioners' captions. No photo is in both "
        "training and test data, even under another name. Evaluations then request it by its "
        "`metric`; the same training is done once.",
        submitted="Submitted: poll for the model.",
        canceled="Stops the training, unless another run needs it.",
    ),
    "study": RunDescriptions(
        many="studies",
        submit="Study correlations of pre-gen with post-gen scores",
        named="a correlation study",
        listed="correlation studies",
        about="The study of Tanti, Gatt and Muscat (2018) on the split's finished evaluations of "
        "checkpoints, the 200 latest. Images are sorted by a model's CIDEr-D and cut into 1 to 5 "
        "strata; R² over the strata says which *images* are described well. The rank agreement "
        "over the whole split says whether the metric knows which *model* is better. The same "
        "study is computed once.",
        submitted="Submitted: poll for the study.",
    ),
}


def find_descriptions(kind: AnyRunKind) -> RunDescriptions:
    """The descriptions of a kind of run; general ones for a kind without its own."""
    return _DESCRIPTIONS.get(kind.name) or RunDescriptions(
        many=f"{kind.name}s",
        submit=f"Submit a {kind.noun}",
        named=f"a {kind.noun}",
        listed=f"every {kind.noun}",
        about=f"A {kind.noun} is computed once.",
    )


def make_run_router(offered: KindEntry) -> APIRouter:
    kind, words = offered.kind, find_descriptions(offered.kind)
    tag = kind.place.removeprefix("/v1/")
    links = openapi.describe_links("id", f"get_{kind.name}", f"cancel_{kind.name}")
    made = "ETag", "Location", "Preference-Applied", "Idempotency-Replayed"
    router = APIRouter(prefix=kind.place, tags=[tag], route_class=ServiceRoute)
    router.post(
        "",
        operation_id=f"submit_{kind.name}",
        summary=words.submit,
        description=words.about,
        status_code=202,
        response_model=kind.out,
        response_description=words.submitted,
        responses={
            201: {
                "model": kind.out,
                "description": f"`Prefer: wait=N` was sent, and {words.ended}.",
                **openapi.describe_headers(*made),
                **links,
            },
            202: {**openapi.describe_headers(*made, "Retry-After"), **links},
            **openapi.describe_refusals(
                *openapi.STORED,
                errors.UnknownMetric,
                errors.DiskFull,
                errors.Conflict,
                errors.QueueFull,
            ),
        },
    )(_submitting(offered))
    router.get(
        "",
        operation_id=f"list_{words.many}",
        summary=f"List {words.listed}",
        description=words.filtered,
        response_model=_page_of(kind),
        responses=openapi.describe_refusals(errors.InvalidCursor, *_metric_refusals(kind)),
        openapi_extra={"parameters": [openapi.LABELS]} if offered.labelled else None,
    )(_listing(offered))
    router.get(
        "/{id}",
        operation_id=f"get_{kind.name}",
        summary=f"Get {words.named}",
        description=words.polled,
        response_model=kind.out,
        responses={
            200: openapi.describe_headers("ETag", "Retry-After", "Preference-Applied"),
            304: {
                "description": f"{words.it_is} unchanged since the state in `If-None-Match`.",
                **openapi.describe_headers("ETag", "Preference-Applied"),
            },
            **openapi.describe_refusals(errors.NotFound, *_metric_refusals(kind)),
        },
    )(_getting(kind))
    _add_changes(router, offered, words)
    return router


def _metric_refusals(kind: AnyRunKind) -> tuple[type[errors.PrescoreError], ...]:
    return () if kind.narrow is None else (errors.UnknownMetric,)


def _add_changes(router: APIRouter, offered: KindEntry, words: RunDescriptions) -> None:
    """Add the routes that change a run: cancel, change, delete."""
    kind = offered.kind
    router.post(
        "/{id}/cancel",
        operation_id=f"cancel_{kind.name}",
        summary=f"Cancel {words.named}",
        description=words.canceled,
        status_code=202,
        response_model=kind.out,
        response_description=words.over,
        responses={
            202: openapi.describe_headers("ETag", "Location"),
            **openapi.describe_refusals(errors.NotFound, errors.UnsupportedMedia),
        },
    )(_canceling(kind))
    router.patch(
        "/{id}",
        operation_id=f"change_{kind.name}",
        summary=f"Change {words.named}",
        description=f"Changes its {'labels and its ' if offered.labelled else ''}note, also after "
        "its end. What the body does not name stays; whoever polls gets a new version.",
        response_model=kind.out,
        response_description="As it is now.",
        responses={
            200: openapi.describe_headers("ETag"),
            **openapi.describe_refusals(errors.NotFound, errors.PreconditionFailed),
        },
    )(_changing(offered))
    router.delete(
        "/{id}",
        operation_id=f"delete_{kind.name}",
        summary=f"Delete {words.named}",
        description="Of a run that has ended: it vanishes from lists, boards and studies, and so "
        "does what no other run needs. 409 names what needs it and has not ended.",
        status_code=204,
        response_class=Response,
        response_description="It is deleted.",
        responses=openapi.describe_refusals(
            errors.NotFound, errors.Conflict, errors.PreconditionFailed
        ),
    )(_deleting(kind))


def _submitting(offered: KindEntry) -> Answering:
    async def endpoint(
        request: BaseModel,
        service: Service,
        caller: Caller,
        idempotency_key_: IdempotencyKey = None,
        prefer: Prefer = None,
    ) -> Response:
        key = read_idempotency_key(idempotency_key_)
        submitting = partial(submit_run, service, offered, request, key, caller)
        run = await asyncio.to_thread(submitting)
        return await run_answers.answer_submission(service, offered.kind, run, prefer)

    return _with_types(endpoint, request=offered.request)


def _listing(offered: KindEntry) -> Answering:
    def endpoint(
        request: Request,
        service: Service,
        dataset: _OnDataset = None,
        status: _Status = None,
        limit: _Limit = 50,
        cursor: Cursor = None,
        metrics: Any = None,
    ) -> Response:
        wanted = run_lists.read_label_filters(request.query_params.multi_items())
        asked = RunQuery(dataset, status, wanted, limit, cursor)
        shown, following = run_lists.list_runs(service, offered.kind, asked)
        items = service.listed_answers.get(
            shown,
            metrics,
            lambda these: run_lists.build_answers(service, offered.kind, these, metrics),
        )
        text = b'{"items":[%b],"next":%b}' % (b",".join(items), json.dumps(following).encode())
        return Response(text, media_type="application/json")

    return _with_types(endpoint, metrics=_describe_metrics(offered.kind))


def _getting(kind: AnyRunKind) -> Answering:
    async def endpoint(
        id: str,
        service: Service,
        if_none_match: IfNoneMatch = None,
        prefer: Prefer = None,
        metrics: Any = None,
    ) -> Response:
        return await run_answers.answer_poll(service, kind, id, if_none_match, prefer, metrics)

    return _with_types(endpoint, id=make_identity(kind), metrics=_describe_metrics(kind))


async def _narrowed(
    metrics: Annotated[
        MetricNames | None,
        Query(
            max_length=2000,
            description="Names, separated by commas: `scores`, `forecast`, `estimate` and `health` "
            "have only these metrics.",
            examples=["cider_d,meteor"],
        ),
    ] = None,
) -> Metrics:
    if metrics is None:
        return None
    names = read_metric_names(metrics, "metrics", MOST_METRICS)
    return frozenset(one for name in names for one in catalogue.list_metric_names(name))


async def _not_narrowed() -> None:
    """The metrics of a kind of run without such a parameter."""


def _describe_metrics(kind: AnyRunKind) -> Any:
    """The type of the metrics to which a kind's answers are narrowed."""
    return Annotated[Metrics, Depends(_not_narrowed if kind.narrow is None else _narrowed)]


def _canceling(kind: AnyRunKind) -> Answering:
    def endpoint(id: str, service: Service) -> Response:
        return run_answers.answer_cancellation(service, kind, id)

    return _with_types(endpoint, id=make_identity(kind))


def _changing(offered: KindEntry) -> Answering:
    kind = offered.kind

    def endpoint(
        id: str, change: RunChange, service: Service, if_match: _IfMatch = None
    ) -> Response:
        annotations.change_run(service, kind, id, change, _expecting(id, if_match))
        return run_answers.answer_change(service, kind, id)

    body = EvaluationChange if offered.labelled else RunChange
    return _with_types(endpoint, id=make_identity(kind), change=body)


def _deleting(kind: AnyRunKind) -> Answering:
    def endpoint(id: str, service: Service, if_match: _IfMatch = None) -> Response:
        run_deletion.delete_run(service, kind, id, _expecting(id, if_match))
        return Response(status_code=204)

    return _with_types(endpoint, id=make_identity(kind))


def _expecting(identity: str, if_match: str | None) -> ExpectsVersion:
    return lambda version: allows_etag(if_match, run_answers.make_etag(identity, version))


def _with_types(endpoint: Answering, **types: Any) -> Answering:
    """Set annotations, from which FastAPI takes types that are known only at this point."""
    endpoint.__annotations__.update(types)
    return endpoint


def _page_of(kind: AnyRunKind) -> type[BaseModel]:
    name = kind.out.__name__.removesuffix("Out")
    made = create_model(f"{name}Page", __base__=PageOf[kind.out])  # type: ignore[name-defined]
    return cast("type[BaseModel]", made)
