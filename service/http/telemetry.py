"""Numbers at /metrics for Prometheus: requests, the record, Redis, the disk of home."""

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
    """They are kept for some time, the longer the more they cost: counting takes a twentieth of the
    time at most, however often it is asked.
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
        """All of it, or nothing but that the record does not answer."""
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
        family = GaugeMetricFamily("prescore_queued", "Wake-ups in a queue.", labels=("queue",))
        for name, count in self._queue.waiting().items():
            family.add_metric((name,), count)
        return family

    def _foreign(self) -> Metric:
        meaning = "Entries in our queues that are not ours."
        return CounterMetricFamily("prescore_foreign_jobs", meaning, value=self._queue.foreign())

    def _workers(self) -> Metric:
        """A worker serves all queues of its role."""
        meaning = "Workers that take tasks from a queue."
        family = GaugeMetricFamily("prescore_workers", meaning, labels=("queue",))
        for role, count in self._queue.workers().items():
            for queue in QUEUES[role]:
                family.add_metric((queue,), count)
        return family

    def _disk(self) -> Iterator[Metric]:
        with contextlib.suppress(OSError):  # an API whose objects are elsewhere may have no home
            if self._home is not None:
                disk = shutil.disk_usage(self._home)
                for name, meaning, value in (
                    (
                        "prescore_home_free_bytes",
                        "Bytes that the disk of home has left.",
                        disk.free,
                    ),
                    ("prescore_home_bytes", "Bytes of the disk of home.", disk.total),
                ):
                    yield GaugeMetricFamily(name, meaning, value=value)


def _up(name: str, *, is_up: bool) -> Metric:
    meaning = {"record": "1 if the record answers, else 0.", "redis": "1 if Redis answers, else 0."}
    return GaugeMetricFamily(f"prescore_{name}_up", meaning[name], value=float(is_up))


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
    yield _gauge("prescore_tasks", "Tasks by state.", _by(connection, task_rows.c.status), "status")
    meaning = "Evaluations by state."
    yield _gauge("prescore_evaluations", meaning, _by(connection, runs.c.status), "status")
    yield _attempts(connection)
    found = fleet_status.count_tasks(connection, "ready", "running", "failed")
    meaning = "Tasks of a queue by state: ready, running, failed."
    yield _gauge("prescore_queue_tasks", meaning, found.items(), "queue", "status")
    meaning = "Seconds since the longest ready task of a queue became ready; 0 if none is."
    yield _gauge("prescore_queue_oldest_seconds", meaning, _oldest(connection, now), "queue")
    meaning = "Tasks that failed since they killed the process that computed them."
    yield _gauge("prescore_quarantined", meaning, _quarantined(connection), "queue")
    meaning = "Wake-ups that were not sent to Redis yet."
    yield GaugeMetricFamily("prescore_outbox", meaning, value=_count(connection, outbox))
    yield from _outgoing(connection)
    yield from _ages(connection, now)


def _gauge(
    name: str, meaning: str, found: Iterable[tuple[Sequence[str], float]], *labels: str
) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, number in found:
        family.add_metric(values, number)
    return family


def _by(connection: Connection, column: "sa.Column[str]") -> Iterator[tuple[Sequence[str], int]]:
    query = sa.select(column, sa.func.count()).where(column.is_not(None)).group_by(column)
    for value, count in connection.execute(query):
        yield (value,), count


def _attempts(connection: Connection) -> Metric:
    """With those whose rows were deleted: a counter never falls."""
    meaning = "Attempts at tasks by how they ended."
    family = CounterMetricFamily("prescore_attempts", meaning, labels=("outcome",))
    there = sa.select(attempts.c.outcome, sa.func.count().label("many"))
    there = there.where(attempts.c.outcome.is_not(None)).group_by(attempts.c.outcome)
    every = sa.union_all(there, sa.select(past_attempts)).subquery()
    query = sa.select(every.c.outcome, sa.func.sum(every.c.many)).group_by(every.c.outcome)
    for outcome, many in connection.execute(query):
        family.add_metric((outcome,), int(many))
    return family


def _oldest(connection: Connection, now: float) -> Iterator[tuple[Sequence[str], float]]:
    for queue, seconds in fleet_status.find_longest_ready(connection, now).items():
        yield (queue,), seconds or 0.0


def _quarantined(connection: Connection) -> Iterator[tuple[Sequence[str], int]]:
    these = task_rows.c.status == "failed", task_rows.c.deaths >= MAX_DEATHS, _KILLERS
    query = sa.select(task_rows.c.queue, sa.func.count()).where(*these)
    rows = connection.execute(query.group_by(task_rows.c.queue))
    found = {queue: count for queue, count in rows}  # noqa: C416  a row is no tuple to mypy
    return (((queue,), found.get(queue, 0)) for queue in fleet_status.QUEUE_NAMES)


def _outgoing(connection: Connection) -> Iterator[Metric]:
    meaning = "Messages to webhooks that have not arrived yet."
    waiting = _count(connection, deliveries)
    yield GaugeMetricFamily("prescore_webhook_waiting", meaning, value=waiting)
    lost = connection.execute(sa.select(sa.func.sum(webhooks.c.lost))).scalar()
    meaning = "Messages to the present webhooks that were given up: dead letters."
    yield GaugeMetricFamily("prescore_webhook_dead_letters", meaning, value=int(lost or 0))


def _ages(connection: Connection, now: float) -> Iterator[Metric]:
    """Of what has never happened there is no number."""
    told = {
        fleet_status.LAST_JANITOR_ROUND: (
            "prescore_janitor_seconds",
            "Seconds since a janitor's last round.",
        ),
        fleet_status.LAST_BACKUP: (
            "prescore_backup_seconds",
            "Seconds since the last backup, if any.",
        ),
    }
    at = fleet_status.read_moments(connection)
    for moment, (name, meaning) in told.items():
        found = [((), max(0.0, now - at[moment]))] if moment in at else []
        yield _gauge(name, meaning, found)


def _count(connection: Connection, table: sa.Table) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
