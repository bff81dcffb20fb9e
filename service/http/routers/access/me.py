"""/v1/me: who asks."""

from fastapi import APIRouter

from service.contract.api.access.keys import MeOut
from service.contract.api.texts import rfc3339
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute
from service.works.keyring import keys

router = APIRouter(prefix="/v1/me", tags=["keys"], route_class=ScopedRoute)


@router.get(
    "",
    operation_id="get_me",
    summary="See who you are for the service",
    responses=openapi.refusals(),
)
def get(service: Service) -> MeOut:
    """The team and the scope of the key that asks."""
    asker = service.asker
    key = None if asker.key is None else keys.get(service.records.of_all, asker.key)
    until = None if key is None else key.expires_at
    return MeOut(
        team=asker.team,
        scope=asker.scope.value,
        key=asker.key,
        name=None if key is None else key.name,
        expires_at=None if until is None else rfc3339(until),
        protected_labels=sorted(service.protected),
    )
