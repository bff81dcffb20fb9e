"""Outbox -> queue: the wake-up calls, which carry the keys of works and nothing else.

`RedisQueue` hands them to RQ, which may lose everything without loss: the janitor wakes again what
is ready. A job's id is its work's key, so a second wake-up of one work is at worst an id that
nobody leases. `AtOnce` performs them in this process: for tests of rules and routes.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import redis
import rq
import sqlalchemy as sa
from rq.job import Job
from rq.serializers import JSONSerializer
from sqlalchemy.engine import Row

from service.contract.errors import InvalidSetting
from service.contract.plan.works import KINDS, QUEUES
from service.works.records import Records
from service.works.tables import outbox, work_rows

FUNCTION = "workers.jobs.run"  # by name: the front door never imports the workers
JOB_SECONDS = 24 * 3600  # our own deadlines are shorter; RQ must not have one of its own
QUICK_SECONDS = 1.5
_BATCH = 500
_FOREIGN = "prescore:foreign"


class Queue(Protocol):
    def flush(self, records: Records) -> int:
        """Sends what the outbox holds; how many wake-ups."""
        ...

    def wake(self, key: str, queue: str, *, first: bool = False) -> None: ...

    def missing(self, records: Records, before: float) -> list[tuple[str, str]]:
        """(key, queue) of works planned before that time that are ready, and in no queue."""
        ...

    def waiting(self) -> dict[str, int]:
        """How many wake-ups each queue holds."""
        ...

    def foreign(self) -> int:
        """How many entries were not ours."""
        ...

    def ping(self) -> None:
        """Raises where the queue is away."""
        ...


class AtOnce:
    """Performs each wake-up as soon as it is sent, in the process that sends it."""

    def __init__(self, perform: Callable[[str], None]) -> None:
        self._perform = perform
        self._performing = False

    def flush(self, records: Records) -> int:
        """Returns when the outbox is empty: what a work releases is performed too."""
        if self._performing:  # by what is being performed: the first call goes on
            return 0
        self._performing = True
        try:
            return sum(self._sent(records))
        finally:
            self._performing = False

    def _sent(self, records: Records) -> Iterator[int]:
        while (row := _taken(records)) is not None:
            self._perform(row.work_key)
            yield 1

    def wake(self, key: str, queue: str, *, first: bool = False) -> None:  # noqa: ARG002
        self._perform(key)

    def missing(self, records: Records, before: float) -> list[tuple[str, str]]:  # noqa: ARG002
        return []

    def waiting(self) -> dict[str, int]:
        return {}

    def foreign(self) -> int:
        return 0

    def ping(self) -> None:
        """It is never away."""


def _taken(records: Records) -> Row[Any] | None:
    """The next of the outbox, which holds it no more. Metrics are computed beside inference in a
    fleet, so none waits here for what is still to be inferred; those that go first come first.
    """
    order = outbox.c.queue.in_(QUEUES["metrics"]).desc(), outbox.c.first.desc(), outbox.c.id
    with records.transaction() as connection:
        row = connection.execute(sa.select(outbox).order_by(*order).limit(1)).first()
        if row is not None:
            connection.execute(outbox.delete().where(outbox.c.id == row.id))
    return row


class RedisQueue:
    def __init__(self, connection: redis.Redis) -> None:
        self.connection = connection
        self._queues: dict[str, rq.Queue] = {
            name: rq.Queue(name, connection=connection, serializer=JSONSerializer)
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

    def ping(self) -> None:
        self.connection.ping()

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
