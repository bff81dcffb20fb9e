"""Queues of ready works, filled from the outbox. An entry, a wake-up, is only the key of a work.

`RedisQueue` uses RQ, which may lose entries: the janitor queues ready works again. A job's id is
its work's key; a worker that receives a key twice cannot lease the work twice. `AtOnce` performs
works in this process, for tests of rules and routes.
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
from service.contract.plan.works import KINDS
from service.works.records import Records
from service.works.tables import outbox, work_rows

FUNCTION = "workers.jobs.run"  # by name, since the API never imports the workers
JOB_SECONDS = 24 * 3600  # works have shorter deadlines; RQ's must never pass before them
QUICK_SECONDS = 1.5
_BATCH = 500
_FOREIGN = "prescore:foreign"


class Queue(Protocol):
    def flush(self, records: Records) -> int:
        """Send the outbox's wake-ups; returns how many."""
        ...

    def wake(self, key: str, queue: str, *, first: bool = False) -> None: ...

    def missing(self, records: Records, before: float) -> list[tuple[str, str]]:
        """(key, queue) of ready works that were planned before that time and are in no queue."""
        ...

    def waiting(self) -> dict[str, int]:
        """The number of wake-ups in each queue."""
        ...

    def foreign(self) -> int:
        """The number of entries that were not from Prescore."""
        ...

    def ping(self) -> None:
        """Raise if the queue cannot be reached."""
        ...


class AtOnce:
    """Performs each work at once, in the process that sends its wake-up."""

    def __init__(self, perform: Callable[[str], None]) -> None:
        self._perform = perform
        self._performing = False

    def flush(self, records: Records) -> int:
        """Perform works until the outbox is empty, also those that a work releases."""
        if self._performing:  # a work that is being performed called this; the outer call goes on
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
        """Can always be reached."""


def _taken(records: Records) -> Row[Any] | None:
    """Take the next entry from the outbox: metrics before inference, since in a fleet metrics do
    not wait for inference; then those with `first`.
    """
    inferred = outbox.c.queue.startswith("inference")
    order = inferred, outbox.c.first.desc(), outbox.c.id
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
        """Send the outbox's wake-ups; if Redis does not answer they stay there for the janitor."""
        with records.reading() as connection:
            rows = connection.execute(sa.select(outbox).order_by(outbox.c.id).limit(_BATCH)).all()
        if not rows:
            return 0
        with contextlib.suppress(redis.RedisError, OSError):
            for row in [row for row in rows if not row.first]:
                self.wake(row.work_key, row.queue)
            # So that they keep their order.
            for row in reversed([row for row in rows if row.first]):
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
        """(key, queue) of ready works that were planned before that time and are in no queue."""
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
        """The number of wake-ups in each queue."""
        return {name: queue.count for name, queue in sorted(self._queues.items())}

    def note_foreign(self) -> None:
        """Count an entry in the queues that is not from Prescore."""
        self.connection.incr(_FOREIGN)

    def ping(self) -> None:
        self.connection.ping()

    def foreign(self) -> int:
        count = self.connection.get(_FOREIGN)
        return int(count) if isinstance(count, bytes) else 0


def connect(url: str, timeout: float = QUICK_SECONDS) -> redis.Redis:
    """A connection with short timeouts: wake-ups can be sent later, so nobody waits for Redis."""
    return redis.Redis.from_url(url, socket_timeout=timeout, socket_connect_timeout=timeout)


def check(connection: redis.Redis) -> None:
    """Raise InvalidSetting if Redis may evict wake-ups."""
    policy = connection.config_get("maxmemory-policy").get("maxmemory-policy")
    if policy != "noeviction":
        raise InvalidSetting(
            f"Redis has maxmemory-policy {policy}, expected noeviction: "
            "with any other one it drops queued work when memory is short"
        )
