"""/ui/session: a browser's key, in a cookie that its scripts cannot read; for the page alone."""

import asyncio
import time

from fastapi import APIRouter, Request, Response
from pydantic import Field

from service.access import keys
from service.access.key_lookup import InvalidKey, find_valid_key
from service.access.keys import KeyRecord
from service.contract.api.request_parts import StrictModel
from service.http.dependencies import Running, Service
from service.http.entrance.json_bodies import JsonRoute
from service.http.entrance.keyring import COOKIE, not_valid

_LONGEST = 30 * 24 * 3600  # seconds; then one signs in again


class _SmallRoute(JsonRoute):
    most_bytes = 4096


router = APIRouter(
    prefix="/ui/session", tags=["keys"], route_class=_SmallRoute, include_in_schema=False
)


class KeyIn(StrictModel):
    """The key of whoever signs in."""

    key: str = Field(min_length=1, max_length=keys.LONGEST_KEY_TEXT)


@router.post("", status_code=204, operation_id="sign_in")
async def sign_in(request: Request, service: Service, body: KeyIn) -> Response:
    """Keep a valid key in a cookie, until it ends, and for at most a month."""
    now = time.time()
    key = await asyncio.to_thread(_valid, service, body.key, now)
    until = _LONGEST if key.expires_at is None else key.expires_at - now
    answer = Response(status_code=204, headers={"Cache-Control": "no-store"})
    answer.set_cookie(
        COOKIE,
        body.key,
        max_age=int(min(until, _LONGEST)),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


@router.delete("", status_code=204, operation_id="sign_out")
async def sign_out() -> Response:
    answer = Response(status_code=204, headers={"Cache-Control": "no-store"})
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _valid(service: Running, given: str, now: float) -> KeyRecord:
    with service.records.of_all.reading() as connection:
        try:
            return find_valid_key(
                given, lambda identity: keys.find_key_and_hash(connection, identity), now
            )
        except InvalidKey as error:
            raise not_valid(error) from None
