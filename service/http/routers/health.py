"""/livez, /readyz and /metrics: for load balancers and Prometheus."""

import redis
import sqlalchemy as sa
from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from service.contract.api.metrics import HealthOut, ReadyOut
from service.contract.errors import Unavailable
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute

router = APIRouter(tags=[openapi.HEALTH], route_class=ScopedRoute)


@router.get("/livez", operation_id="livez", summary="Check whether the API runs")
def livez() -> HealthOut:
    """200 as long as this process can answer."""
    return HealthOut(status="ok")


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="Check whether the service is ready",
    responses=openapi.refusals(),
)
def readyz(service: Service) -> ReadyOut:
    """200 when database and Redis answer over new connections, and a worker is there."""
    try:
        service.records.check()
        workers = service.queue.workers()
    except (sa.exc.SQLAlchemyError, redis.RedisError, OSError) as error:
        raise Unavailable(f"not ready: {type(error).__name__}") from None
    if not any(workers.values()):
        raise Unavailable("not ready: there is no worker")
    return ReadyOut(status="ok", workers=workers)


@router.get(
    "/metrics",
    operation_id="prometheus_metrics",
    summary="Metrics of the service itself",
    response_class=PlainTextResponse,
)
def metrics(service: Service) -> Response:
    """The service's numbers in Prometheus's text format; metrics of captions: `/v1/metrics`."""
    return Response(generate_latest(service.telemetry.registry), media_type=CONTENT_TYPE_LATEST)
