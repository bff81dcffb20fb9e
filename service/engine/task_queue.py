"""Queues of ready tasks, filled from the outbox. An entry, a wake-up, is only the key of a task.

`RedisQueue` uses RQ, which may lose entries: the janitor sends again as many as are missing. For
each, a worker leases the ready task of that queue whose turn it is; so one wake-up is as good as
another, and one too many is harmless. `AtOnce` does so in this process, for tests of rules and
routes.
"""

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

import redis
import rq
import sqlalchemy as sa
from rq.job import Job
from rq.serializers import JSONSerializer

from service.contract.errors import InvalidSetting
from service.contract.plan.tasks import KINDS, QUEUES
from service.engine.records import Records
from service.engine.tables import outbox, task_rows

FUNCTION = "workers.jobs.run_job"  # by name, since the API never imports the workers
JOB_SECONDS = 24 * 3600  # tasks have shorter deadlines; RQ's must never pass before them
QUICK_SECONDS = 1.0  # how long one waits for an answer
_AWAY_SECONDS = 1.0  # how long nobody asks a Redis that did not answer
_BATCH = 500
_RUNG_AT_ONCE = 2000  # each time; a second
_FOREIGN = "prescore:foreign"
_AT_MOST = 0.01  # seconds that one waits for a wake-up that should be there
_KEY = re.compile(rb"[0-9a-f]{64}")


class WakeUpQueue(Protocol):
    def flush(self, records: Records) -> int:
        """Send the outbox's wake-ups; returns how many."""
        ...

    def ring_again(self, records: Records, before: float) -> int:
        """Send wake-ups again where queues have fewer than there are ready tasks; how many."""
        ...

    def waiting(self) -> dict[str, int]:
        """The number of wake-ups in each queue."""
        ...

    def foreign(self) -> int:
        """The number of entries that were not from Prescore."""
        ...

    def connected(self) -> dict[str, float]:
        """Names of the connected workers, each with the time since when; raises if it is away."""
        ...

    def workers(self) -> dict[str, int]:
        """Count the connected workers of each role."""
        names = self.connected()
        return {role: sum(name.startswith(f"{role}@") for name in names) for role in QUEUES}

    def add_up(self, more: Mapping[str, int], seconds: int) -> Mapping[str, int]:
        """Add to numbers shared by all processes for so many seconds; returns the sums."""
        ...


class InProcessQueue(WakeUpQueue):
    """Performs tasks at once: calls `perform` with the queue's name of each wake-up."""

    def __init__(self, perform: Callable[[str], None]) -> None:
        self._perform = perform
        self._performing = False
        self._since = time.time()
        self._sums: Mapping[str, int] = {}

    def flush(self, records: Records) -> int:
        """Perform tasks until the outbox is empty, also those that a task releases."""
        if self._performing:  # a task that is being performed called this; the outer call goes on
            return 0
        self._performing = True
        try:
            return sum(self._sent(records))
        finally:
            self._performing = False

    def _sent(self, records: Records) -> Iterator[int]:
        while (queue := _taken(records)) is not None:
            self._perform(queue)
            yield 1

    def ring_again(self, records: Records, before: float) -> int:  # noqa: ARG002
        return 0

    def waiting(self) -> dict[str, int]:
        return {queue: 0 for queues in QUEUES.values() for queue in queues}

    def foreign(self) -> int:
        return 0

    def connected(self) -> dict[str, float]:
        return {f"{role}@in-process": self._since for role in QUEUES}

    def add_up(self, more: Mapping[str, int], seconds: int) -> Mapping[str, int]:  # noqa: ARG002
        """Add up sums of this process alone; they grow, since each caller adds only new counts."""
        self._sums = {**self._sums, **{at: self._sums.get(at, 0) + n for at, n in more.items()}}
        return {name: self._sums[name] for name in more}


def _taken(records: Records) -> str | None:
    """Take the next wake-up from the outbox: its queue. As in a fleet, metrics come first."""
    order = outbox.c.queue.startswith("inference"), outbox.c.id
    with records.transaction() as connection:
        row = connection.execute(sa.select(outbox).order_by(*order).limit(1)).first()
        if row is None:
            return None
        connection.execute(outbox.delete().where(outbox.c.id == row.id))
    return str(row.queue)


# Ready tasks whose wake-ups have left the outbox.
_SENT = (task_rows.c.status == "ready", task_rows.c.key.not_in(sa.select(outbox.c.task_key)))


def _ready(records: Records) -> Mapping[str, int]:
    """The number of ready tasks of each queue, of those that have left the outbox."""
    count = sa.func.count().label("waiting")
    query = sa.select(task_rows.c.queue, count).where(*_SENT).group_by(task_rows.c.queue)
    return {row.queue: row.waiting for row in records.read(query)}


def _rung_longest_ago(records: Records, queue: str, before: float, most: int) -> Sequence[str]:
    """Find ready tasks of a queue that were woken before that time, and note them as woken now."""
    query = sa.select(task_rows.c.key).where(
        *_SENT, task_rows.c.queue == queue, task_rows.c.rung_at < before
    )
    with records.transaction() as connection:
        keys = connection.execute(query.order_by(task_rows.c.rung_at).limit(most)).scalars().all()
        these = task_rows.update().where(task_rows.c.key.in_(keys))
        connection.execute(these.values(rung_at=time.time()))
    return keys


class RedisQueue(WakeUpQueue):
    def __init__(self, connection: redis.Redis) -> None:
        self.connection = connection
        self._away_until = 0.0
        self._queues: dict[str, rq.Queue] = {
            name: rq.Queue(name, connection=connection, serializer=JSONSerializer)
            for name in {kind.queue for kind in KINDS.values()}
        }

    def flush(self, records: Records) -> int:
        """Send the outbox's wake-ups; if Redis does not answer they stay there for the janitor, and
        others do not wait for it either.
        """
        if time.monotonic() < self._away_until:
            return 0
        rows = records.read(sa.select(outbox).order_by(outbox.c.id).limit(_BATCH))
        if not rows:
            return 0
        try:
            self.wake_all((row.task_key, row.queue) for row in rows)
        except (redis.RedisError, OSError):
            self._away_until = time.monotonic() + _AWAY_SECONDS
            return 0
        with records.transaction() as connection:
            sent = [row.id for row in rows]
            connection.execute(outbox.delete().where(outbox.c.id.in_(sent)))
        return len(rows)

    def wake_all(self, tasks: Iterable[tuple[str, str]]) -> None:
        """Queue these (key, queue), in as few exchanges with Redis as is fit."""
        remaining = iter(tasks)
        while batch := list(islice(remaining, _BATCH)):
            with self.connection.pipeline(transaction=False) as pipeline:
                for key, queue in batch:
                    job = self._job(key, queue)
                    self._queues[queue].enqueue_job(job, pipeline=pipeline)
                pipeline.execute()

    def _job(self, key: str, queue: str) -> Job:
        return Job.create(
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

    def ring_again(self, records: Records, before: float) -> int:
        """Leave alone what was woken since `before`: a worker may have taken its wake-up just now.
        More wake-ups than ready tasks hide none that is lost, since each of them begins a task.
        """
        rung, waiting = 0, self.waiting()
        for queue, count in _ready(records).items():
            lacking = min(count - waiting.get(queue, 0), _RUNG_AT_ONCE - rung)
            if lacking > 0:
                keys = _rung_longest_ago(records, queue, before, lacking)
                self.wake_all((key, queue) for key in keys)
                rung += len(keys)
        return rung

    def waiting(self) -> dict[str, int]:
        return {name: queue.count for name, queue in sorted(self._queues.items())}

    def is_wake_up(self, entry: bytes) -> bool:
        """True if what was taken from a queue is a wake-up; other entries are counted. The data of
        its job, if there is any, is deleted.
        """
        with contextlib.suppress(redis.RedisError, OSError):
            self.connection.delete(Job.redis_job_namespace_prefix.encode() + entry)
        if _KEY.fullmatch(entry):
            return True
        self._note_foreign()
        return False

    def take_wake_up(self, queue: str) -> None:
        """Take one from a queue, if there is any: a task of it is begun without."""
        with contextlib.suppress(redis.RedisError, OSError):
            # As a worker takes them, which its rights in Redis allow.
            found: Any = self.connection.blpop([self._queues[queue].key], timeout=_AT_MOST)
            if found is not None:
                self.is_wake_up(found[1])

    def add_up(self, more: Mapping[str, int], seconds: int) -> Mapping[str, int]:
        names = list(more)
        with self.connection.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.incrby(name, more[name])
            for name in names:
                pipeline.expire(name, seconds)
            answers = pipeline.execute()
        return {name: int(total) for name, total in zip(names, answers, strict=False)}

    def _note_foreign(self) -> None:
        with contextlib.suppress(redis.RedisError, OSError):
            self.connection.incr(_FOREIGN)

    def drop_what_is_no_queue(self) -> None:
        """Delete what others have put in the place of our queues, if it is no list."""
        for queue in self._queues.values():
            try:
                self.connection.llen(queue.key)
            except redis.ResponseError as error:
                if str(error).startswith("WRONGTYPE"):
                    self.connection.delete(queue.key)
                    self._note_foreign()

    def connected(self) -> dict[str, float]:
        """Redis knows their connections by name: those of a dead one are gone. Asked over a new
        connection, since one that is kept may lead to a server that others no longer reach.
        """
        kept = self.connection.connection_pool
        pool = redis.ConnectionPool(kept.connection_class, **kept.connection_kwargs)
        try:
            clients = redis.Redis(connection_pool=pool).client_list()
        finally:
            pool.disconnect()
        now, begins = time.time(), tuple(f"{role}@" for role in QUEUES)
        return {
            client["name"]: now - int(client["age"])
            for client in clients
            if client["name"].startswith(begins)
        }

    def foreign(self) -> int:
        count = self.connection.get(_FOREIGN)
        return int(count) if isinstance(count, bytes) and count.isdigit() else 0


def connect_redis(url: str, timeout: float = QUICK_SECONDS, name: str | None = None) -> redis.Redis:
    """A connection with short timeouts: wake-ups can be sent later, so nobody waits for Redis."""
    return redis.Redis.from_url(
        url, socket_timeout=timeout, socket_connect_timeout=timeout, client_name=name
    )


def check_eviction(connection: redis.Redis) -> None:
    """Raise InvalidSetting if Redis may evict wake-ups."""
    policy = connection.config_get("maxmemory-policy").get("maxmemory-policy")
    if policy != "noeviction":
        raise InvalidSetting(
            f"Redis has maxmemory-policy {policy}, expected noeviction: "
            "with any other one it drops queued tasks when memory is short"
        )
