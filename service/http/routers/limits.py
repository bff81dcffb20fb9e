"""/v1/limits: how much a request may hold."""

from fastapi import APIRouter

from service.contract.limits import LimitsOut
from service.http.entrance.access import ScopedRoute

router = APIRouter(prefix="/v1/limits", tags=["limits"], route_class=ScopedRoute)


@router.get("", operation_id="get_limits", summary="See the limits")
def limits() -> LimitsOut:
    """How much requests, files and connections may hold. More is refused, and the refusal names
    the limit.
    """
    return LimitsOut()
