"""Outbox -> RQ: the wake-up calls. RQ carries work keys and may lose everything without loss.

A job's id is its work's key, so a second wake-up of one work is at worst an id that nobody leases.
"""

import contextlib
from collections.abc import Iterable

import redis
import sqlalchemy as sa
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from service.contract.errors import InvalidSetting
from service.contract.records import Records
from service.contract.tables import outbox
from service.contract.works import KINDS

FUNCTION = "workers.jobs.run"  # by name: the front door never imports the workers
JOB_SECONDS = 24 * 3600  # our own deadlines are shorter; RQ must not have one of its own
QUICK_SECONDS = 1.5
_BATCH = 500


class Queues:
    def __init__(self, connection: redis.Redis) -> None:
        self.connection = connection
        self._queues: dict[str, Queue] = {
            name: Queue(name, connection=connection, serializer=JSONSerializer)
            for name in {kind.queue for kind in KINDS.values()}
        }

    def flush(self, records: Records) -> int:
        """Sends what the outbox holds; with Redis away it stays there for the janitor."""
        with records.reading() as connection:
            rows = connection.execute(sa.select(outbox).order_by(outbox.c.id).limit(_BATCH)).all()
        if not rows:
            return 0
        with contextlib.suppress(redis.RedisError, OSError):
            for row in rows:
                self.wake(row.work_key, row.queue)
            with records.transaction() as connection:
                sent = [row.id for row in rows]
                connection.execute(outbox.delete().where(outbox.c.id.in_(sent)))
            return len(rows)
        return 0

    def wake(self, key: str, queue: str) -> None:
        job = Job.create(
            FUNCTION,
            args=[key],
            id=key,
            connection=self.connection,
            serializer=JSONSerializer,
            origin=queue,
            timeout=JOB_SECONDS,
            result_ttl=0,
            failure_ttl=3600,
            ttl=JOB_SECONDS,
        )
        self._queues[queue].enqueue_job(job)

    def missing(self, works: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Of these (key, queue), those that no queue holds."""
        return [
            (key, queue)
            for key, queue in works
            if self.connection.lpos(self._queues[queue].key, key) is None
        ]

    def waiting(self) -> int:
        return sum(queue.count for queue in self._queues.values())


def connect(url: str, timeout: float = QUICK_SECONDS) -> redis.Redis:
    """A Redis that is away is no reason to keep anybody waiting: what it should hear can wait."""
    return redis.Redis.from_url(url, socket_timeout=timeout, socket_connect_timeout=timeout)


def check(connection: redis.Redis) -> None:
    """Refuses a Redis that may forget wake-ups at will."""
    policy = connection.config_get("maxmemory-policy").get("maxmemory-policy")
    if policy != "noeviction":
        raise InvalidSetting(
            f"Redis has maxmemory-policy {policy}, expected noeviction: "
            "with any other one it drops queued work when memory is short"
        )
