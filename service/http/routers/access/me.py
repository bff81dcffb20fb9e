"""/v1/me: who asks."""

from collections.abc import Iterator

from fastapi import APIRouter, Request

from prescore.models.keys import Limit, Me
from service.access import keys
from service.contract.api.field_types import moment_or_none
from service.engine import quotas as room
from service.http import openapi
from service.http.dependencies import Running, Service
from service.http.entrance.access import ScopedRoute
from service.http.entrance.rates import Rate

router = APIRouter(prefix="/v1/me", tags=["keys"], route_class=ScopedRoute)


@router.get(
    "",
    operation_id="get_me",
    summary="See who you are for the service",
    responses=openapi.refusals(),
)
def get(request: Request, service: Service) -> Me:
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
    if isinstance(rate, Rate):
        used = rate.most - rate.left
        yield Limit(name="requests", limit=rate.most, used=used, resets_in=rate.seconds)


def _of_team(service: Running) -> Iterator[Limit]:
    quotas = service.allowed.of(service.asker)
    for name, limit, used, seconds in room.read_quotas(service.records, quotas):
        yield Limit(name=name, limit=limit, used=used, resets_in=seconds)
