"""/v1/keys: the keys of a team."""

from typing import Annotated

from fastapi import APIRouter, Query

from prescore.models.keys import Key, KeyPage
from service.access import keys
from service.access.keys import KeyRecord
from service.contract.api.field_types import moment, moment_or_none
from service.contract.errors import InvalidCursor, InvalidRequest
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute
from service.http.routers.parameters import Cursor, Digits
from service.runs import search

router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=ScopedRoute)


@router.get(
    "",
    operation_id="list_keys",
    summary="See the keys of your team",
    responses=openapi.refusals(InvalidCursor, InvalidRequest),
)
def every(
    service: Service,
    limit: Annotated[int, Query(ge=1, le=200), Digits] = 50,
    cursor: Cursor = None,
) -> KeyPage:
    """The latest first, with those that have ended. No answer holds a key itself: it is shown once,
    where `prescore keys create` makes it.
    """
    team = service.asker.team
    of = f"keys of {team}"
    after = None
    if cursor is not None:
        at, identity = search.read_cursor(of, cursor, float, str)
        after = at, identity
    found = keys.list_keys_page(service.records, team, limit, after)
    last = found[-1] if len(found) == limit else None
    following = None if last is None else search.write_cursor(of, last.created_at, last.id)
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
