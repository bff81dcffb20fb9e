"""/livez, /readyz and /metrics: for load balancers and Prometheus."""

import sqlite3

import redis
import sqlalchemy as sa
from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from prescore.models.workers_and_queues import Liveness, Readiness
from service.contract.errors import ServiceUnavailable
from service.engine.records import ROOM
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute

router = APIRouter(tags=[openapi.HEALTH], route_class=ScopedRoute)


@router.get("/livez", operation_id="livez", summary="Check whether the API runs")
def livez() -> Liveness:
    """200 as long as this process can answer."""
    return Liveness(status="ok")


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="Check whether the service is ready",
    responses=openapi.refusals(),
)
def readyz(service: Service) -> Readiness:
    """200 when the API can take requests and keep them: the record can be read and written and is
    not damaged, the disk has room, and a worker is there. It is 200 without Redis too, and
    `findings` says so: requests are accepted, and their tasks begin when Redis is back.
    """
    try:
        service.records.check()
        with service.blobs.upload() as tried:
            tried.write(bytes(ROOM))
            tried.flush()
    except (sa.exc.SQLAlchemyError, OSError) as error:
        raise ServiceUnavailable(f"not ready: {_reason(error)}") from None
    if damage := service.record_pages.findings():
        raise ServiceUnavailable(
            f"not ready: the record is damaged ({damage[0]}); see `prescore doctor`"
        )
    try:
        workers = service.queue.workers()
    except (redis.RedisError, OSError) as error:
        finding = f"Redis does not answer ({type(error).__name__}): accepted tasks wait for it"
        return Readiness(status="ok", workers={}, findings=[finding])
    if not any(workers.values()):
        raise ServiceUnavailable("not ready: there is no worker")
    return Readiness(status="ok", workers=workers, findings=[])


def _reason(error: sa.exc.SQLAlchemyError | OSError) -> str:
    """Without what drivers of servers say: their addresses and users."""
    if isinstance(error, OSError):
        return f"nothing can be written to the disk ({error.strerror})"
    if isinstance(error, sa.exc.DBAPIError) and isinstance(error.orig, sqlite3.Error):
        return f"the record cannot be read and written ({error.orig}); see `prescore doctor`"
    return f"the record does not answer ({type(error).__name__})"


@router.get(
    "/metrics",
    operation_id="prometheus_metrics",
    summary="Metrics of the service itself",
    response_class=PlainTextResponse,
)
def metrics(service: Service) -> Response:
    """The service's numbers in Prometheus's text format; metrics of captions: `/v1/metrics`."""
    return Response(generate_latest(service.telemetry.registry), media_type=CONTENT_TYPE_LATEST)
