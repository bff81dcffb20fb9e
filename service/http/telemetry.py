"""Telemetry at /metrics for Prometheus: requests, the record, Redis, the disk of home."""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import redis
import sqlalchemy as sa
from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.engine import Connection

from service.contract.plan.tasks import QUEUES
from service.engine import fleet_status
from service.engine.leases import MAX_DEATHS
from service.engine.records import Records
from service.engine.tables import (
    attempts,
    deliveries,
    outbox,
    past_attempts,
    runs,
    task_rows,
    webhooks,
)
from service.engine.task_queue import WakeUpQueue

_KEPT_SECONDS = 5.0


class FleetCollector(Collector):
    """Numbers of the whole fleet. They are kept, for the longer the more they cost: counting
    takes a twentieth of the time at most, however often it is asked.
    """

    def __init__(self, records: Records, queue: WakeUpQueue, home: Path | None) -> None:
        self._records = records
        self._queue = queue
        self._home = home
        self._lock = Lock()
        self._kept: list[Metric] = []
        self._until = 0.0

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            began = time.monotonic()
            if began >= self._until:
                self._kept = self._counted()
                ended = time.monotonic()
                self._until = ended + min(20 * (ended - began), _KEPT_SECONDS)
            return iter(self._kept)

    def _counted(self) -> list[Metric]:
        """Redis is asked meanwhile: if neither answers, nobody waits for one after the other."""
        with ThreadPoolExecutor(1) as pool:
            queued = pool.submit(self._queued)
            return [*self._recorded(), *queued.result(), *self._disk()]

    def _recorded(self) -> list[Metric]:
        """Numbers of the record, or only that it does not answer."""
        try:
            with self._records.reading() as connection:
                found = list(collect_numbers(connection, time.time()))
        except sa.exc.SQLAlchemyError:
            return [_up("record", is_up=False)]
        return [_up("record", is_up=True), *found]

    def _queued(self) -> list[Metric]:
        asked: tuple[Callable[[], Metric], ...] = (self._waiting, self._foreign, self._workers)
        try:
            return [_up("redis", is_up=True), *(ask() for ask in asked)]
        except (redis.RedisError, OSError):
            return [_up("redis", is_up=False)]

    def _waiting(self) -> Metric:
        waiting = (((queue,), count) for queue, count in self._queue.waiting().items())
        return _gauge("prescore_queued", "Wake-ups in a queue.", waiting, "queue")

    def _foreign(self) -> Metric:
        meaning = "Entries in our queues that are not ours."
        return CounterMetricFamily("prescore_foreign_jobs", meaning, value=self._queue.foreign())

    def _workers(self) -> Metric:
        """A worker serves all queues of its role."""
        roles = self._queue.workers().items()
        found = (((queue,), count) for role, count in roles for queue in QUEUES[role])
        return _gauge("prescore_workers", "Workers that take tasks from a queue.", found, "queue")

    def _disk(self) -> Iterator[Metric]:
        with contextlib.suppress(OSError):  # an API whose objects are elsewhere may have no home
            if self._home is not None:
                disk = shutil.disk_usage(self._home)
                meaning = "Bytes that the disk of home has left."
                yield _number("prescore_home_free_bytes", meaning, disk.free)
                yield _number("prescore_home_bytes", "Bytes of the disk of home.", disk.total)


def _up(name: str, *, is_up: bool) -> Metric:
    part = {"record": "the record", "redis": "Redis"}[name]
    return _number(f"prescore_{name}_up", f"1 if {part} answers, else 0.", float(is_up))


def _number(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=value)


def _gauge(
    name: str, meaning: str, found: Iterable[tuple[Sequence[str], float]], *labels: str
) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, number in found:
        family.add_metric(values, number)
    return family


METHODS = ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE")
_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)


class Telemetry:
    """The numbers of one application, in a registry of its own: a process may have two. `home`: the
    folder whose disk is looked at, if there is one.
    """

    def __init__(self, records: Records, queue: WakeUpQueue, home: Path | None = None) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(FleetCollector(records, queue, home))
        ProcessCollector(registry=self.registry)
        self._requests = Histogram(
            "prescore_request_seconds",
            "Requests by method, route and status.",
            ("method", "route", "status"),
            buckets=_SECONDS,
            registry=self.registry,
        )

    def request(self, method: str, route: str, status: int | None, seconds: float) -> None:
        """Count a request; `status` is None if the connection ended before the answer."""
        known = method if method in METHODS else "other"  # a client may send any text
        self._requests.labels(known, route, str(status)).observe(seconds)


# As in the index's own condition: a plan that is made before values are known needs it there.
_KILLERS = sa.text("deaths > 0")


def collect_numbers(connection: Connection, now: float) -> Iterator[Metric]:
    by = _count_by(connection, task_rows.c.status)
    yield _gauge("prescore_tasks", "Tasks by state.", by, "status")
    by = _count_by(connection, runs.c.status)
    yield _gauge("prescore_evaluations", "Evaluations by state.", by, "status")
    yield _attempts(connection)
    found = fleet_status.count_tasks(connection, "ready", "running", "failed")
    meaning = "Tasks of a queue by state: ready, running, failed."
    yield _gauge("prescore_queue_tasks", meaning, found.items(), "queue", "status")
    ready = fleet_status.find_longest_ready(connection, now)
    oldest = (((queue,), seconds or 0.0) for queue, seconds in ready.items())
    meaning = "Seconds since the longest ready task of a queue became ready; 0 if none is."
    yield _gauge("prescore_queue_oldest_seconds", meaning, oldest, "queue")
    meaning = "Tasks that failed since they killed the process that computed them."
    yield _gauge("prescore_quarantined", meaning, _quarantined(connection), "queue")
    meaning = "Wake-ups that were not sent to Redis yet."
    yield _number("prescore_outbox", meaning, _count(connection, outbox))
    meaning = "Messages to webhooks that have not arrived yet."
    yield _number("prescore_webhook_waiting", meaning, _count(connection, deliveries))
    lost = connection.execute(sa.select(sa.func.sum(webhooks.c.lost))).scalar()
    meaning = "Messages to the present webhooks that were given up: dead letters."
    yield _number("prescore_webhook_dead_letters", meaning, int(lost or 0))
    yield from _ages(connection, now)


def _count_by(
    connection: Connection, column: "sa.Column[str]"
) -> Iterator[tuple[Sequence[str], int]]:
    query = sa.select(column, sa.func.count()).where(column.is_not(None)).group_by(column)
    for value, count in connection.execute(query):
        yield (value,), count


def _attempts(connection: Connection) -> Metric:
    """Count attempts, also those whose rows were deleted: a counter never falls."""
    meaning = "Attempts at tasks by how they ended."
    family = CounterMetricFamily("prescore_attempts", meaning, labels=("outcome",))
    there = sa.select(attempts.c.outcome, sa.func.count().label("many"))
    there = there.where(attempts.c.outcome.is_not(None)).group_by(attempts.c.outcome)
    every = sa.union_all(there, sa.select(past_attempts)).subquery()
    query = sa.select(every.c.outcome, sa.func.sum(every.c.many)).group_by(every.c.outcome)
    for outcome, many in connection.execute(query):
        family.add_metric((outcome,), int(many))
    return family


def _quarantined(connection: Connection) -> Iterator[tuple[Sequence[str], int]]:
    these = task_rows.c.status == "failed", task_rows.c.deaths >= MAX_DEATHS, _KILLERS
    query = sa.select(task_rows.c.queue, sa.func.count()).where(*these)
    rows = connection.execute(query.group_by(task_rows.c.queue))
    found = {queue: count for queue, count in rows}  # noqa: C416  a row is no tuple to mypy
    return (((queue,), found.get(queue, 0)) for queue in fleet_status.QUEUE_NAMES)


def _ages(connection: Connection, now: float) -> Iterator[Metric]:
    """Seconds since an event; no number where it has never happened."""
    last, at = fleet_status, fleet_status.read_moments(connection)
    for moment, name, meaning in (
        (last.LAST_JANITOR_ROUND, "janitor", "Seconds since a janitor's last round."),
        (last.LAST_BACKUP, "backup", "Seconds since the last backup, if any."),
    ):
        found = [((), max(0.0, now - at[moment]))] if moment in at else []
        yield _gauge(f"prescore_{name}_seconds", meaning, found)


def _count(connection: Connection, table: sa.Table) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
