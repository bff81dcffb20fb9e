"""The routes of every kind of run: submit, list, get, cancel, change, delete."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Annotated, Any, cast

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, create_model

from prescore.models.base import PageOf
from prescore.models.runs import RunStatus
from service.contract.api.changes import EvaluationChange, RunChange
from service.contract.api.field_types import DatasetFilter
from service.contract.askers import Asker
from service.contract.errors import (
    BodyTooLarge,
    Conflict,
    InvalidCursor,
    InvalidRequest,
    MalformedJson,
    NotFound,
    PreconditionFailed,
    UnsupportedMedia,
)
from service.engine import quotas
from service.http import openapi
from service.http.dependencies import AppParts, Caller, Service, find_asker
from service.http.json_bodies import Handler, JsonRoute
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
)
from service.http.routers.run_descriptions import find_descriptions
from service.retention import run_deletion
from service.runs import annotations, run_lists
from service.runs.annotations import ExpectsVersion
from service.runs.kinds import KindEntry, submit_run
from service.runs.run_lists import RunQuery
from service.runs.run_store import AnyRunKind

_Status = Annotated[RunStatus | None, Query(description="Only runs with this status.")]
_OnDataset = Annotated[
    DatasetFilter | None,
    Query(description="Only runs on this dataset, or this split of it: `name[@version][/split]`."),
]
_Limit = Annotated[int, Query(ge=1, le=200), Digits]
Answering = Callable[..., Response | Coroutine[Any, Any, Response]]


def make_run_router(offered: KindEntry) -> APIRouter:
    kind, words = offered.kind, find_descriptions(offered.kind)
    tag = kind.place.removeprefix("/v1/")
    router = APIRouter(prefix=kind.place, tags=[tag], route_class=SubmissionRoute)
    router.post(
        "",
        operation_id=f"submit_{words.one}",
        summary=words.submit,
        description=words.about,
        status_code=202,
        response_model=kind.out,
        response_description=words.submitted,
        responses=run_answers.describe_submission(
            kind.out, words.ended, f"get_{words.one}", f"cancel_{words.one}"
        ),
    )(_submitting(offered))
    router.get(
        "",
        operation_id=f"list_{words.many}",
        summary=words.every,
        description=words.filtered,
        response_model=_page_of(kind),
        responses=openapi.describe_refusals(InvalidCursor, InvalidRequest),
        openapi_extra={"parameters": [openapi.LABELS]} if offered.labelled else None,
    )(_listing(offered))
    router.get(
        "/{id}",
        operation_id=f"get_{words.one}",
        summary=words.get,
        description=words.polled,
        response_model=kind.out,
        responses=run_answers.describe_poll(words.it_is),
    )(_getting(kind))
    router.post(
        "/{id}/cancel",
        operation_id=f"cancel_{words.one}",
        summary=words.cancel,
        description=words.canceled,
        status_code=202,
        response_model=kind.out,
        response_description=words.over,
        responses=run_answers.CANCELED,
    )(_canceling(kind))
    return router


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
    ) -> Response:
        wanted = run_lists.read_label_filters(request.query_params.multi_items())
        asked = RunQuery(dataset, status, wanted, limit, cursor)
        shown, following = run_lists.list_runs(service, offered.kind, asked)
        items = service.listed_answers.get(
            shown, lambda these: run_lists.build_answers(service, offered.kind, these)
        )
        text = b'{"items":[%b],"next":%b}' % (b",".join(items), json.dumps(following).encode())
        return Response(text, media_type="application/json")

    return endpoint


def _getting(kind: AnyRunKind) -> Answering:
    async def endpoint(
        id: str, service: Service, if_none_match: IfNoneMatch = None, prefer: Prefer = None
    ) -> Response:
        return await run_answers.answer_poll(service, kind, id, if_none_match, prefer)

    return _with_types(endpoint, id=make_identity(kind))


def _canceling(kind: AnyRunKind) -> Answering:
    def endpoint(id: str, service: Service) -> Response:
        return run_answers.answer_cancellation(service, kind, id)

    return _with_types(endpoint, id=make_identity(kind))


def _with_types(endpoint: Answering, **types: Any) -> Answering:
    """Set annotations, from which FastAPI takes types that are known only at this point."""
    endpoint.__annotations__.update(types)
    return endpoint


def _page_of(kind: AnyRunKind) -> type[BaseModel]:
    name = kind.out.__name__.removesuffix("Out")
    made = create_model(f"{name}Page", __base__=PageOf[kind.out])  # type: ignore[name-defined]
    return cast("type[BaseModel]", made)


IfMatch = Annotated[
    str | None,
    Header(description="The `ETag` of the answer that you have seen: 412 if it is another now."),
]
_CHANGED = (
    *(NotFound, InvalidRequest, MalformedJson, BodyTooLarge, UnsupportedMedia),
    PreconditionFailed,
)
_DELETED = NotFound, Conflict, PreconditionFailed


def make_change_router(offered: KindEntry) -> APIRouter:
    kind, words = offered.kind, find_descriptions(offered.kind)
    tag = kind.place.removeprefix("/v1/")
    router = APIRouter(prefix=kind.place, tags=[tag], route_class=JsonRoute)
    router.patch(
        "/{id}",
        operation_id=f"change_{words.one}",
        summary=words.get.replace("Get", "Change", 1),
        description=f"Changes its {'labels and its ' if offered.labelled else ''}note, also after "
        "its end. What the body does not name stays; whoever polls gets a new version.",
        response_model=kind.out,
        response_description="As it is now.",
        responses={200: openapi.describe_headers("ETag"), **openapi.describe_refusals(*_CHANGED)},
    )(_changing(offered))
    router.delete(
        "/{id}",
        operation_id=f"delete_{words.one}",
        summary=words.get.replace("Get", "Delete", 1),
        description="Of a run that has ended: it vanishes from lists, boards and studies, and so "
        "does what no other run needs. 409 names what needs it and has not ended.",
        status_code=204,
        response_class=Response,
        response_description="It is deleted.",
        responses=openapi.describe_refusals(*_DELETED),
    )(_deleting(kind))
    return router


def _changing(offered: KindEntry) -> Callable[..., Response]:
    kind = offered.kind

    def endpoint(
        id: str, change: RunChange, service: Service, if_match: IfMatch = None
    ) -> Response:
        annotations.change_run(service, kind, id, change, _expecting(id, if_match))
        return run_answers.answer_change(service, kind, id)

    body = EvaluationChange if offered.labelled else RunChange
    return _with_body_types(endpoint, id=make_identity(kind), change=body)


def _deleting(kind: AnyRunKind) -> Callable[..., Response]:
    def endpoint(id: str, service: Service, if_match: IfMatch = None) -> Response:
        run_deletion.delete_run(service, kind, id, _expecting(id, if_match))
        return Response(status_code=204)

    return _with_body_types(endpoint, id=make_identity(kind))


def _expecting(identity: str, if_match: str | None) -> ExpectsVersion:
    return lambda version: allows_etag(if_match, run_answers.make_etag(identity, version))


def _with_body_types(endpoint: Callable[..., Response], **types: Any) -> Callable[..., Response]:
    """Set annotations, from which FastAPI takes types that are known only at this point."""
    endpoint.__annotations__.update(types)
    return endpoint


class SubmissionRoute(JsonRoute):
    """A route that begins a run, if it takes a body that is posted."""

    def handler(self) -> Handler:
        handle = super().handler()
        if self.body_field is None or "POST" not in (self.methods or ()):
            return handle

        async def admitted(request: Request) -> Response:
            await asyncio.to_thread(_check_room, request.app.state.parts, find_asker(request))
            return await handle(request)

        return admitted


def _check_room(service: AppParts, asker: Asker) -> None:
    """QueueFull or LimitReached where there is no room for a run of this asker."""
    quotas.check_unfinished_runs(service.records, service.most_runs, asker.caller)
    quotas.check_submission_quota(service.records.of(asker.team), service.allowed.of(asker))
