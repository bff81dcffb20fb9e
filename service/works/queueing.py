"""Outbox -> RQ: the wake-up calls. RQ carries work keys and may lose everything without loss.

A job's id is its work's key, so a second wake-up of one work is at worst an id that nobody leases.
"""

import contextlib

import redis
import sqlalchemy as sa
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from service.contract.errors import InvalidSetting
from service.contract.plan.works import KINDS
from service.works.records import Records
from service.works.tables import outbox, work_rows

FUNCTION = "workers.jobs.run"  # by name: the front door never imports the workers
JOB_SECONDS = 24 * 3600  # our own deadlines are shorter; RQ must not have one of its own
QUICK_SECONDS = 1.5
_BATCH = 500
_FOREIGN = "prescore:foreign"


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
            for row in [row for row in rows if not row.first]:
                self.wake(row.work_key, row.queue)
            for row in reversed(
                [row for row in rows if row.first]
            ):  # so that they keep their order
                self.wake(row.work_key, row.queue, first=True)
            with records.transaction() as connection:
                sent = [row.id for row in rows]
                connection.execute(outbox.delete().where(outbox.c.id.in_(sent)))
            return len(rows)
        return 0

    def wake(self, key: str, queue: str, *, first: bool = False) -> None:
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
        self._queues[queue].enqueue_job(job, at_front=first)

    def missing(self, records: Records, before: float) -> list[tuple[str, str]]:
        """(key, queue) of works planned before that time that are ready, and in no queue."""
        query = sa.select(work_rows.c.key, work_rows.c.queue).where(
            work_rows.c.status == "ready", work_rows.c.created_at < before
        )
        with records.reading() as connection:
            ready = connection.execute(query.limit(1000)).all()
        return [
            (row.key, row.queue)
            for row in ready
            if self.connection.lpos(self._queues[row.queue].key, row.key) is None
        ]

    def waiting(self) -> dict[str, int]:
        """How many wake-ups each queue holds."""
        return {name: queue.count for name, queue in sorted(self._queues.items())}

    def note_foreign(self) -> None:
        """Somebody put into our queues what is not ours."""
        self.connection.incr(_FOREIGN)

    def foreign(self) -> int:
        count = self.connection.get(_FOREIGN)
        return int(count) if isinstance(count, bytes) else 0


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
