"""/livez, /readyz, /metrics, and /v1/limits, /v1/workers, /v1/queues: the service itself."""

import sqlite3
import time

import redis
import sqlalchemy as sa
from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from prescore import plain_text
from prescore.models.workers_and_queues import (
    Liveness,
    Queue,
    QueueList,
    Readiness,
    TaskHeld,
    Worker,
    WorkerList,
)
from service.contract import errors
from service.contract.api.field_types import moment
from service.contract.limits import LimitsOut
from service.engine import fleet_status
from service.engine.fleet_status import WorkerState
from service.engine.records import ROOM
from service.http import openapi
from service.http.dependencies import Service
from service.http.service_route import ServiceRoute

router = APIRouter(tags=[openapi.HEALTH], route_class=ServiceRoute)


@router.get("/livez", operation_id="livez", summary="Check whether the API runs")
def livez() -> Liveness:
    """200 as long as this process can answer."""
    return Liveness(status="ok")


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="Check whether the service is ready",
)
def readyz(service: Service) -> Readiness:
    """200 when the API can take requests and keep them: the record can be read and written and is
    not damaged, and the disk has room. It is 200 without Redis and without workers too, and
    `findings` says so: requests are accepted, and their tasks begin when these are there.
    """
    try:
        service.records.check()
        with service.blobs.upload() as tried:
            tried.write(bytes(ROOM))
    except (sa.exc.SQLAlchemyError, OSError) as error:
        raise errors.ServiceUnavailable(f"not ready: {_reason(error)}") from None
    if damage := service.record_pages.findings():
        raise errors.ServiceUnavailable(
            f"not ready: the record is damaged ({damage[0]}); see `prescore doctor`"
        )
    try:
        workers = service.queue.workers()
    except (redis.RedisError, OSError) as error:
        finding = f"Redis does not answer ({type(error).__name__}): accepted tasks wait for it"
        return Readiness(status="ok", workers={}, findings=[finding])
    findings = [] if any(workers.values()) else ["there is no worker: accepted tasks wait for one"]
    return Readiness(status="ok", workers=workers, findings=findings)


def _reason(error: sa.exc.SQLAlchemyError | OSError) -> str:
    """Reason of an error, without the addresses and users that drivers of servers put into it."""
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
def export_metrics(service: Service) -> Response:
    """The service's numbers in Prometheus's text format; metrics of captions: `/v1/metrics`."""
    return Response(generate_latest(service.telemetry.registry), media_type=CONTENT_TYPE_LATEST)


limits_router = APIRouter(prefix="/v1/limits", tags=["limits"], route_class=ServiceRoute)


@limits_router.get("", operation_id="get_limits", summary="See the limits")
def get_limits() -> LimitsOut:
    """The largest requests, files and connections. More is refused, and the refusal names
    the limit.
    """
    return LimitsOut()


queues_router = APIRouter(prefix="/v1", tags=["queues"], route_class=ServiceRoute)


@queues_router.get(
    "/workers",
    operation_id="list_workers",
    summary="See who works",
)
def list_workers(service: Service) -> WorkerList:
    """All workers that are connected or hold a task, by name. A worker that computes a second,
    short task beside a long one shows the long one. 503 while Redis does not answer.
    """
    try:
        connected = service.queue.connected()
    except (redis.RedisError, OSError) as error:
        raise errors.ServiceUnavailable(
            f"Redis does not answer ({type(error).__name__}); try again"
        ) from None
    found = fleet_status.list_workers(service.records, connected, time.time())
    return WorkerList(items=[_shown(one) for one in found])


def _shown(worker: WorkerState) -> Worker:
    held = worker.held
    return Worker(
        name=plain_text.quoted(worker.name),
        role=plain_text.quoted(worker.role),
        state=worker.state,
        since=moment(worker.since),
        task=None if held is None else TaskHeld(**vars(held)),
    )


@queues_router.get(
    "/queues",
    operation_id="list_queues",
    summary="See what waits",
)
def list_queues(service: Service) -> QueueList:
    """Numbers of tasks by queue, whichever team asked for them. Tasks that wait for others are
    not counted.
    """
    with service.records.reading() as connection:
        every = fleet_status.count_tasks(connection, "ready", "running")
        own = fleet_status.count_tasks(connection, "ready", "running", payer=service.asker.team)
        oldest = fleet_status.find_longest_ready(connection, time.time())
    return QueueList(
        items=[
            Queue(
                name=name,
                waiting=every[name, "ready"],
                running=every[name, "running"],
                yours=own[name, "ready"] + own[name, "running"],
                oldest_seconds=oldest[name],
            )
            for name in fleet_status.QUEUE_NAMES
        ]
    )
