"""/v1/keys, /v1/keys/oidc, /v1/me and /ui/session: the keys of a team, and signing in."""

import asyncio
import time
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from prescore.models.keys import JobKey, Key, KeyPage, Limit, Me
from service.access import keys
from service.access.key_lookup import InvalidKey, find_valid_key
from service.access.keys import KeyRecord
from service.contract import errors
from service.contract.api.changes import JobKeyRequest
from service.contract.api.field_types import moment, moment_or_none
from service.contract.api.request_parts import StrictModel
from service.contract.askers import Scope
from service.engine import quotas as room
from service.http import openapi
from service.http.dependencies import AppParts, Service, find_address
from service.http.loop_limits import LoopLimit
from service.http.middleware.authentication import KEY_COOKIE, make_key_refusal
from service.http.middleware.rate_limits import RequestRate
from service.http.routers.request_parameters import Cursor, Digits
from service.http.service_route import ServiceRoute
from service.runs import run_lists

router = APIRouter(tags=["keys"], route_class=ServiceRoute)


@router.get(
    "/v1/keys",
    operation_id="list_keys",
    summary="See the keys of your team",
    responses=openapi.describe_refusals(errors.InvalidCursor),
)
def list_keys(
    service: Service,
    limit: Annotated[int, Query(ge=1, le=200), Digits] = 50,
    cursor: Cursor = None,
) -> KeyPage:
    """Keys, the latest first, with those that have ended. No answer holds a key itself: it is shown
    once, where `prescore keys create` makes it.
    """
    team = service.asker.team
    of = f"keys of {team}"
    after = None
    if cursor is not None:
        at, identity = run_lists.read_cursor(of, cursor, float, str)
        after = at, identity
    found = keys.list_keys(service.records, team, limit, after)
    last = found[-1] if len(found) == limit else None
    following = None if last is None else run_lists.write_cursor(of, last.created_at, last.id)
    return KeyPage(items=[_listed(key) for key in found], next=following)


def _listed(key: KeyRecord) -> Key:
    return Key(
        id=key.id,
        name=key.name,
        scope=key.scope.value,
        subject=key.subject,
        created_at=moment(key.created_at),
        expires_at=moment_or_none(key.expires_at),
        revoked_at=moment_or_none(key.revoked_at),
        used_at=moment_or_none(key.used_at),
    )


@router.get(
    "/v1/me",
    operation_id="get_me",
    summary="See who you are for the service",
)
def get_me(request: Request, service: Service) -> Me:
    """The team and the scope of the key that asks, and how much of its limits is used."""
    asker = service.asker
    key = None if asker.key is None else keys.read_key(service.records, asker.key)
    return Me(
        team=asker.team,
        scope=asker.scope.value,
        key=asker.key,
        name=None if key is None else key.name,
        expires_at=None if key is None else moment_or_none(key.expires_at),
        protected_labels=sorted(service.protected),
        limits=[*_requests(request), *_of_team(service)],
    )


def _requests(request: Request) -> Iterator[Limit]:
    rate = getattr(request.state, "rate", None)
    if isinstance(rate, RequestRate):
        used = rate.most - rate.left
        yield Limit(name="requests", limit=rate.most, used=used, resets_in=rate.seconds)


def _of_team(service: AppParts) -> Iterator[Limit]:
    quotas = service.allowed.of(service.asker)
    for name, limit, used, seconds in room.read_quotas(service.records, quotas):
        yield Limit(name=name, limit=limit, used=used, resets_in=seconds)


# Whoever can reach the service may send tokens: at most so many threads are busy with them.
_AT_ONCE = LoopLimit(4)


@router.post(
    "/v1/keys/oidc",
    status_code=201,
    operation_id="make_job_key",
    summary="Get a key for the token of a CI job",
    response_description="A key for an hour.",
    responses=openapi.describe_refusals(errors.Unauthorized, errors.Overloaded),
)
async def make_job_key(
    service: Service, request: Request, response: Response, body: JobKeyRequest
) -> JobKey:
    """Make a key for a CI job; the request needs no key. The token is a JWT that GitHub, GitLab or
    another issuer has signed for the job; the service's operator lists trusted issuers and
    projects. Runs that are submitted with the key get its `labels`.
    """
    async with _AT_ONCE:
        key, text = await asyncio.to_thread(
            service.jobs.key_for, service.records, body.token, find_address(request)
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


_LONGEST = 30 * 24 * 3600  # seconds; then one signs in again


class SignInRequest(StrictModel):
    """Request to sign in with a key."""

    key: str = Field(min_length=1, max_length=keys.LONGEST_KEY_TEXT)


@router.post("/ui/session", status_code=204, operation_id="sign_in", include_in_schema=False)
async def sign_in(request: Request, service: Service, body: SignInRequest) -> Response:
    """Keep a valid key in a cookie, until it ends, and for at most a month."""
    now = time.time()
    key = await asyncio.to_thread(_valid, service, body.key, now)
    until = _LONGEST if key.expires_at is None else key.expires_at - now
    answer = Response(status_code=204, headers={"Cache-Control": "no-store"})
    answer.set_cookie(
        KEY_COOKIE,
        body.key,
        max_age=int(min(until, _LONGEST)),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


@router.delete("/ui/session", status_code=204, operation_id="sign_out", include_in_schema=False)
async def sign_out() -> Response:
    answer = Response(status_code=204, headers={"Cache-Control": "no-store"})
    answer.delete_cookie(KEY_COOKIE, httponly=True, samesite="strict")
    return answer


def _valid(service: AppParts, given: str, now: float) -> KeyRecord:
    with service.records.of_all.reading() as connection:
        try:
            return find_valid_key(
                given, lambda identity: keys.find_key_and_hash(connection, identity), now
            )
        except InvalidKey as error:
            raise make_key_refusal(error) from None
