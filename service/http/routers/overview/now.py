"""/v1/workers and /v1/queues: who works now, and what waits."""

import time

import redis
from fastapi import APIRouter

from prescore import plain_text
from prescore.models.workers_and_queues import Queue, QueueList, TaskHeld, Worker, WorkerList
from service.contract.api.field_types import moment
from service.contract.errors import ServiceUnavailable
from service.engine import fleet_status
from service.engine.fleet_status import WorkerState
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute

router = APIRouter(prefix="/v1", tags=["queues"], route_class=ScopedRoute)


@router.get(
    "/workers",
    operation_id="list_workers",
    summary="See who works",
    responses=openapi.refusals(),
)
def list_workers(service: Service) -> WorkerList:
    """All workers that are connected or hold a task, by name. A worker that computes a second,
    short task beside a long one shows the long one. 503 while Redis does not answer.
    """
    try:
        connected = service.queue.connected()
    except (redis.RedisError, OSError) as error:
        raise ServiceUnavailable(
            f"Redis does not answer ({type(error).__name__}); try again"
        ) from None
    return WorkerList(
        items=[_shown(one) for one in fleet_status.list_workers(service.records, connected)]
    )


def _shown(worker: WorkerState) -> Worker:
    held = worker.held
    return Worker(
        name=plain_text.quoted(worker.name),
        role=plain_text.quoted(worker.role),
        state=worker.state,
        since=moment(worker.since),
        task=None if held is None else TaskHeld(**vars(held)),
    )


@router.get(
    "/queues",
    operation_id="list_queues",
    summary="See what waits",
    responses=openapi.refusals(),
)
def list_queues(service: Service) -> QueueList:
    """How many tasks each queue has, whichever team asked for them. Tasks that wait for others are
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
