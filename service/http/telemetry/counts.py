"""Counts of all that processes of a fleet share: the record, Redis, the disk of home."""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import redis
import sqlalchemy as sa
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.contract.plan.tasks import QUEUES
from service.engine.records import Records
from service.engine.task_queue import WakeUpQueue
from service.http.telemetry import record

_KEPT_SECONDS = 5.0


class Counts(Collector):
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
                found = list(record.numbers(connection, time.time()))
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
