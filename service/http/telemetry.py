"""The numbers at /metrics for Prometheus: works, evaluations, attempts, queues, requests."""

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import redis
import sqlalchemy as sa
from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.works.queueing import Queue
from service.works.records import Records
from service.works.tables import attempts, past_attempts, runs, work_rows

_METHODS = ("GET", "HEAD", "PUT", "POST")
_KEPT_SECONDS = 5.0
_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)


class Telemetry:
    """The numbers of one application, in a registry of its own: a process may have two."""

    def __init__(self, records: Records, queue: Queue) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Counts(records, queue))
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
        known = method if method in _METHODS else "other"  # a client may send any text
        self._requests.labels(known, route, str(status)).observe(seconds)


class _Counts(Collector):
    """Counts from the database and Redis, which all processes of a fleet share. They are kept for
    some time, the longer the more they cost: counting takes a twentieth of the time at most,
    however often it is asked.
    """

    def __init__(self, records: Records, queue: Queue) -> None:
        self._records = records
        self._queue = queue
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
            return [*self._rows(), *queued.result()]

    def _rows(self) -> Iterator[Metric]:
        yield self._count(
            GaugeMetricFamily, "prescore_works", "Works by state.", work_rows.c.status
        )
        yield self._count(
            GaugeMetricFamily,
            "prescore_evaluations",
            "Evaluations by state.",
            runs.c.status,
        )
        yield self._attempts()

    def _queued(self) -> list[Metric]:
        try:
            waiting, foreign = self._queue.waiting(), self._queue.foreign()
        except (redis.RedisError, OSError):
            return []
        family = GaugeMetricFamily("prescore_queued", "Wake-ups in a queue.", labels=("queue",))
        for name, count in waiting.items():
            family.add_metric((name,), count)
        return [
            family,
            CounterMetricFamily(
                "prescore_foreign_jobs", "Entries in our queues that are not ours.", value=foreign
            ),
        ]

    def _attempts(self) -> Metric:
        """With those whose rows were deleted: a counter never falls."""
        meaning = "Attempts at works by how they ended."
        family = CounterMetricFamily("prescore_attempts", meaning, labels=("outcome",))
        there = sa.select(attempts.c.outcome, sa.func.count().label("many"))
        there = there.where(attempts.c.outcome.is_not(None)).group_by(attempts.c.outcome)
        every = sa.union_all(there, sa.select(past_attempts)).subquery()
        query = sa.select(every.c.outcome, sa.func.sum(every.c.many)).group_by(every.c.outcome)
        with contextlib.suppress(sa.exc.SQLAlchemyError), self._records.reading() as connection:
            for outcome, many in connection.execute(query):
                family.add_metric((outcome,), int(many))
        return family

    def _count(
        self,
        kind: type[GaugeMetricFamily],
        name: str,
        meaning: str,
        column: "sa.Column[str]",
    ) -> Metric:
        """A count of rows by a column; without values while the database does not answer."""
        family = kind(name, meaning, labels=(column.name,))
        query = sa.select(column, sa.func.count()).where(column.is_not(None)).group_by(column)
        with contextlib.suppress(sa.exc.SQLAlchemyError), self._records.reading() as connection:
            for value, count in connection.execute(query):
                family.add_metric((value,), count)
        return family
