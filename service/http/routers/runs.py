"""The routes of every kind of run: submit, list, get, cancel."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, create_model

from prescore.models.base import PageOf
from prescore.models.runs import RunStatus
from service.contract.api.field_types import DatasetFilter
from service.contract.errors import InvalidCursor, InvalidRequest
from service.http import openapi
from service.http.dependencies import Caller, Service
from service.http.entrance.admission import SubmissionRoute
from service.http.preferences import idempotency_key
from service.http.routers import polling
from service.http.routers.descriptions import words_of
from service.http.routers.parameters import (
    Cursor,
    Digits,
    IdempotencyKey,
    IfNoneMatch,
    Prefer,
    identity_of,
)
from service.runs import search
from service.runs.base import AnyKind
from service.runs.kinds import Offered, submit
from service.runs.search import Asked

_Status = Annotated[RunStatus | None, Query(description="Only runs with this status.")]
_OnDataset = Annotated[
    DatasetFilter | None,
    Query(description="Only runs on this dataset, or this split of it: `name[@version][/split]`."),
]
_Limit = Annotated[int, Query(ge=1, le=200), Digits]
Answering = Callable[..., Response | Coroutine[Any, Any, Response]]


def router_of(offered: Offered) -> APIRouter:
    kind, words = offered.kind, words_of(offered.kind)
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
        responses=polling.submission(
            kind.out, words.ended, f"get_{words.one}", f"cancel_{words.one}"
        ),
    )(_submitting(offered))
    router.get(
        "",
        operation_id=f"list_{words.many}",
        summary=words.every,
        description=words.filtered,
        response_model=_page_of(kind),
        responses=openapi.refusals(InvalidCursor, InvalidRequest),
        openapi_extra={"parameters": [openapi.LABELS]} if offered.labelled else None,
    )(_listing(offered))
    router.get(
        "/{id}",
        operation_id=f"get_{words.one}",
        summary=words.get,
        description=words.polled,
        response_model=kind.out,
        responses=polling.polled(words.it_is),
    )(_getting(kind))
    router.post(
        "/{id}/cancel",
        operation_id=f"cancel_{words.one}",
        summary=words.cancel,
        description=words.canceled,
        status_code=202,
        response_model=kind.out,
        response_description=words.over,
        responses=polling.CANCELED,
    )(_canceling(kind))
    return router


def _submitting(offered: Offered) -> Answering:
    async def endpoint(
        request: BaseModel,
        service: Service,
        caller: Caller,
        idempotency_key_: IdempotencyKey = None,
        prefer: Prefer = None,
    ) -> Response:
        key = idempotency_key(idempotency_key_)
        submitting = partial(submit, service, offered, request, key, caller)
        run = await asyncio.to_thread(submitting)
        return await polling.submitted(service, offered.kind, run, prefer)

    return _with(endpoint, request=offered.request)


def _listing(offered: Offered) -> Answering:
    def endpoint(
        request: Request,
        service: Service,
        dataset: _OnDataset = None,
        status: _Status = None,
        limit: _Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        wanted = search.wanted_labels(request.query_params.multi_items())
        asked = Asked(dataset, status, wanted, limit, cursor)
        shown, following = search.page(service, offered.kind, asked)
        items = service.listed_answers.get(
            shown, lambda these: search.answers(service, offered.kind, these)
        )
        text = b'{"items":[%b],"next":%b}' % (b",".join(items), json.dumps(following).encode())
        return Response(text, media_type="application/json")

    return endpoint


def _getting(kind: AnyKind) -> Answering:
    async def endpoint(
        id: str, service: Service, if_none_match: IfNoneMatch = None, prefer: Prefer = None
    ) -> Response:
        return await polling.answer(service, kind, id, if_none_match, prefer)

    return _with(endpoint, id=identity_of(kind))


def _canceling(kind: AnyKind) -> Answering:
    def endpoint(id: str, service: Service) -> Response:
        return polling.canceled(service, kind, id)

    return _with(endpoint, id=identity_of(kind))


def _with(endpoint: Answering, **types: Any) -> Answering:
    """Set annotations, from which FastAPI takes types that are known only at this point."""
    endpoint.__annotations__.update(types)
    return endpoint


def _page_of(kind: AnyKind) -> type[BaseModel]:
    name = kind.out.__name__.removesuffix("Out")
    made = create_model(f"{name}Page", __base__=PageOf[kind.out])  # type: ignore[name-defined]
    return cast("type[BaseModel]", made)
