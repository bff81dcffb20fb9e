"""The routes of every kind of run that change and delete it."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from service.contract.api.changes import EvaluationChange, RunChange
from service.contract.errors import (
    BodyTooLarge,
    Conflict,
    InvalidRequest,
    MalformedJson,
    NotFound,
    PreconditionFailed,
    UnsupportedMedia,
)
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.json_bodies import JsonRoute
from service.http.preferences import allows
from service.http.routers import polling
from service.http.routers.descriptions import words_of
from service.http.routers.parameters import identity_of
from service.retention import run_deletion
from service.runs import annotations
from service.runs.annotations import ExpectsVersion
from service.runs.base import AnyKind
from service.runs.kinds import Offered

IfMatch = Annotated[
    str | None,
    Header(description="The `ETag` of the answer that you have seen: 412 if it is another now."),
]
_CHANGED = (
    *(NotFound, InvalidRequest, MalformedJson, BodyTooLarge, UnsupportedMedia),
    PreconditionFailed,
)
_DELETED = NotFound, Conflict, PreconditionFailed


def router_of(offered: Offered) -> APIRouter:
    kind, words = offered.kind, words_of(offered.kind)
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
        responses={200: openapi.headers("ETag"), **openapi.refusals(*_CHANGED)},
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
        responses=openapi.refusals(*_DELETED),
    )(_deleting(kind))
    return router


def _changing(offered: Offered) -> Callable[..., Response]:
    kind = offered.kind

    def endpoint(
        id: str, change: RunChange, service: Service, if_match: IfMatch = None
    ) -> Response:
        annotations.change_run(service, kind, id, change, _expecting(id, if_match))
        return polling.changed(service, kind, id)

    body = EvaluationChange if offered.labelled else RunChange
    return _with(endpoint, id=identity_of(kind), change=body)


def _deleting(kind: AnyKind) -> Callable[..., Response]:
    def endpoint(id: str, service: Service, if_match: IfMatch = None) -> Response:
        run_deletion.delete_run(service, kind, id, _expecting(id, if_match))
        return Response(status_code=204)

    return _with(endpoint, id=identity_of(kind))


def _expecting(identity: str, if_match: str | None) -> ExpectsVersion:
    return lambda version: allows(if_match, polling.etag(identity, version))


def _with(endpoint: Callable[..., Response], **types: Any) -> Callable[..., Response]:
    """Set annotations, from which FastAPI takes types that are known only at this point."""
    endpoint.__annotations__.update(types)
    return endpoint
