"""/v1/keys/oidc: the token of a CI job, exchanged for a key."""

import asyncio

from fastapi import APIRouter, Request, Response

from prescore.models.keys import JobKey
from service.access.oidc import tokens
from service.contract.api.changes import JobKeyRequest
from service.contract.api.field_types import moment
from service.contract.askers import Scope
from service.contract.errors import (
    BodyTooLarge,
    MalformedJson,
    Overloaded,
    Unauthorized,
    UnsupportedMedia,
)
from service.http import openapi
from service.http.dependencies import Service, address_of
from service.http.entrance.json_bodies import JsonRoute

# Whoever can reach the service may send tokens: at most so many threads are busy with them.
_AT_ONCE = asyncio.Semaphore(4)


class _SmallRoute(JsonRoute):
    most_bytes = 3 * tokens.LONGEST_TOKEN  # of a token whose every character JSON may write as two


router = APIRouter(prefix="/v1/keys/oidc", tags=["keys"], route_class=_SmallRoute)


@router.post(
    "",
    status_code=201,
    operation_id="make_job_key",
    summary="Get a key for the token of a CI job",
    response_description="A key for an hour.",
    responses=openapi.refusals(
        Unauthorized, MalformedJson, BodyTooLarge, UnsupportedMedia, Overloaded
    ),
)
async def exchange(
    service: Service, request: Request, response: Response, body: JobKeyRequest
) -> JobKey:
    """Needs no key. The token is a JWT that GitHub, GitLab or another issuer has signed for the
    job; the service's operator says which issuers and projects are trusted. What is submitted with
    the key gets its `labels`.
    """
    async with _AT_ONCE:
        key, text = await asyncio.to_thread(
            service.jobs.key_for, service.records, body.token, address_of(request)
        )
    assert key.expires_at is not None
    response.headers["Cache-Control"] = "no-store"
    return JobKey(
        key=text,
        expires_at=moment(key.expires_at),
        scopes=[scope.value for scope in Scope if key.scope.includes(scope)],
        team=key.team,
        labels=dict(key.labels),
    )
