"""The record: rows of truth in SQL. Redis may lose everything; what stands here has happened.

Every change of a work is one transaction that also makes the works that waited for it ready,
writes their wake-ups into the outbox, and tells the evaluations concerned (version, event). A
worker's result counts only while its attempt is the current one.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Engine

from service.contract import history, works
from service.contract.tables import (
    attempts,
    evaluation_works,
    evaluations,
    needs,
    outbox,
    work_rows,
)
from service.contract.works import Work, WorkStatus

MAX_ATTEMPTS = 3
MAX_DEATHS = 2  # a work that kills so many workers is quarantined
LEASE_SECONDS = 12.0  # extended every 3 s: a killed worker's work is free again in time
_WRITER = 0x70726573  # PostgreSQL: the advisory lock of whoever writes


@dataclass(frozen=True)
class Lease:
    """One attempt at a work: what the worker is to do, and until when it may."""

    key: str
    attempt: int
    kind: str
    inputs: Mapping[str, str]  # name -> digest of the blob
    parts: tuple[str, ...]  # digests of the shards, in order
    parameters: Mapping[str, Any]
    deadline: float


class Records:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._reader = engine.execution_options(reading=True)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One writer at a time, on either database: what a change means for others depends on
        what they are at that moment, and the transactions are short.
        """
        with self.engine.begin() as connection:
            if self.engine.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_WRITER)))
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Sees one state of the record and never waits for a writer."""
        with self._reader.begin() as connection:
            yield connection

    def add_new(self, connection: Connection, table: sa.Table, **values: Any) -> bool:
        """Inserts the row unless its key is there already; True where it was inserted."""
        insert = sqlite.insert if self.engine.dialect.name == "sqlite" else postgresql.insert
        statement = insert(table).values(**values).on_conflict_do_nothing()
        inserted = statement.returning(*table.primary_key)  # a row count is not given everywhere
        return connection.execute(inserted).first() is not None

    # Planning's side: works enter the record.

    def add_works(
        self, connection: Connection, planned: Sequence[Work], deadline: float
    ) -> dict[str, bool]:
        """Adds or revives works (those needed first); key -> was it done already."""
        cached: dict[str, bool] = {}
        for work in planned:
            key = work.key
            if key in cached:
                continue
            waiting = sum(not cached[need.key] for need in _distinct(work.needs))
            cached[key] = self._add(connection, work, waiting, deadline)
        return cached

    def _add(self, connection: Connection, work: Work, waiting: int, deadline: float) -> bool:
        key, now = work.key, time.time()
        status: WorkStatus = "waiting" if waiting else "ready"
        fresh = {
            "status": status,
            "waiting_for": waiting,
            "attempt": 0,
            "deaths": 0,
            "error": None,
            "done": 0,
            "total": 0,
            "lease_until": None,
            "started_at": None,
            "finished_at": None,
            "deadline": deadline,
        }
        added = self.add_new(
            connection,
            work_rows,
            key=key,
            kind=work.kind,
            queue=works.KINDS[work.kind].queue,
            inputs=json.dumps({k: works.reference(v) for k, v in work.inputs.items()}),
            parts=json.dumps([part.key for part in work.parts]),
            parameters=json.dumps(dict(work.parameters)),
            created_at=now,
            **fresh,
        )
        for need in _distinct(work.needs):
            self.add_new(connection, needs, work_key=key, needs_key=need.key)
        if not added:
            row = connection.execute(
                sa.select(work_rows.c.status, work_rows.c.deadline).where(work_rows.c.key == key)
            ).one()
            if row.status == "done":
                return True
            if row.status not in works.RESTARTED:
                self._extend(connection, key, max(deadline, row.deadline))
                return False
            connection.execute(work_rows.update().where(work_rows.c.key == key).values(**fresh))
        if status == "ready":
            self._wake(connection, key, works.KINDS[work.kind].queue)
        return False

    def _extend(self, connection: Connection, key: str, deadline: float) -> None:
        connection.execute(
            work_rows.update().where(work_rows.c.key == key).values(deadline=deadline)
        )

    # The workers' side: an attempt begins, lives, ends.

    def lease(self, key: str, worker: str) -> Lease | None:
        """Begins an attempt; None where the work is not to be had (done, canceled, another's)."""
        now = time.time()
        with self.transaction() as connection:
            taken = connection.execute(
                work_rows.update()
                .where(work_rows.c.key == key, work_rows.c.status == "ready")
                .values(
                    status="running",
                    attempt=work_rows.c.attempt + 1,
                    worker=worker,
                    lease_until=now + LEASE_SECONDS,
                    started_at=now,
                    done=0,
                    total=0,
                )
            ).rowcount
            if not taken:
                return None
            row = connection.execute(sa.select(work_rows).where(work_rows.c.key == key)).one()
            connection.execute(
                attempts.insert().values(
                    work_key=key, attempt=row.attempt, worker=worker, started_at=now
                )
            )
            history.tell_about(connection, [key])
            inputs = json.loads(row.inputs)
            return Lease(
                key=key,
                attempt=row.attempt,
                kind=row.kind,
                inputs={name: self._digest(connection, at) for name, at in inputs.items()},
                parts=tuple(
                    self._digest(connection, f"work:{part}") for part in json.loads(row.parts)
                ),
                parameters=json.loads(row.parameters),
                deadline=min(row.deadline, now + works.KINDS[row.kind].seconds),
            )

    def _digest(self, connection: Connection, reference: str) -> str:
        if not reference.startswith("work:"):
            return reference
        key = reference.removeprefix("work:")
        query = sa.select(work_rows.c.result).where(work_rows.c.key == key)
        return str(connection.execute(query).scalar_one())

    def beat(self, lease: Lease, done: int, total: int) -> bool:
        """Extends the lease and notes progress; False where the attempt is no longer current."""
        with self.transaction() as connection:
            alive = self._current(lease, connection, lease_until=time.time() + LEASE_SECONDS)
            if alive and total:
                moved = connection.execute(
                    work_rows.update()
                    .where(
                        work_rows.c.key == lease.key,
                        sa.or_(work_rows.c.done != done, work_rows.c.total != total),
                    )
                    .values(done=done, total=total)
                ).rowcount
                if moved:
                    history.tell_about(connection, [lease.key])
            return alive

    def finish(self, lease: Lease, result: str, summary: Mapping[str, Any]) -> bool:
        """Records the result, if the attempt is still the current one, and wakes who waited."""
        now = time.time()
        with self.transaction() as connection:
            accepted = self._current(
                lease,
                connection,
                status="done",
                result=result,
                summary=json.dumps(dict(summary)),
                error=None,
                finished_at=now,
                lease_until=None,
            )
            self._end_attempt(connection, lease, "done" if accepted else "refused: too late", now)
            if accepted:
                self._release_dependents(connection, lease.key)
                history.tell_about(connection, [lease.key])
            return accepted

    def fail(self, lease: Lease, error: Mapping[str, Any], *, death: bool, retry: bool) -> bool:
        """Ends an attempt badly: the work is ready again, or failed for good."""
        now = time.time()
        with self.transaction() as connection:
            self._end_attempt(connection, lease, str(error.get("code")), now)
            row = connection.execute(
                sa.select(work_rows.c.deaths, work_rows.c.attempt, work_rows.c.queue).where(
                    work_rows.c.key == lease.key
                )
            ).one()
            deaths = row.deaths + death
            again = retry and row.attempt < MAX_ATTEMPTS and deaths < MAX_DEATHS
            accepted = self._current(
                lease,
                connection,
                status="ready" if again else "failed",
                deaths=deaths,
                error=json.dumps(dict(error)),
                lease_until=None,
                finished_at=None if again else now,
            )
            if accepted and again:
                self._wake(connection, lease.key, row.queue)
            if accepted:
                touched = [] if again else self._fail_dependents(connection, lease.key, error)
                history.tell_about(connection, [lease.key, *touched])
            return accepted

    def make_unavailable(self, lease: Lease, reason: Mapping[str, Any]) -> bool:
        """The metric cannot be computed here: not a failure of the evaluation."""
        with self.transaction() as connection:
            accepted = self._current(
                lease,
                connection,
                status="unavailable",
                error=json.dumps(dict(reason)),
                lease_until=None,
                finished_at=time.time(),
            )
            if accepted:
                history.tell_about(connection, [lease.key])
            return accepted

    def hand_back(self, lease: Lease) -> None:
        """A worker that stops returns its work as if it had never begun."""
        with self.transaction() as connection:
            self._end_attempt(connection, lease, "handed back", time.time())
            if self._current(lease, connection, status="ready", lease_until=None):
                queue = works.KINDS[lease.kind].queue
                self._wake(connection, lease.key, queue)
                history.tell_about(connection, [lease.key])

    def _current(self, lease: Lease, connection: Connection, **values: Any) -> bool:
        """Changes the work only while this attempt holds it."""
        changed = connection.execute(
            work_rows.update()
            .where(
                work_rows.c.key == lease.key,
                work_rows.c.attempt == lease.attempt,
                work_rows.c.status == "running",
            )
            .values(**values)
        )
        return changed.rowcount == 1

    def _end_attempt(self, connection: Connection, lease: Lease, outcome: str, now: float) -> None:
        connection.execute(
            attempts.update()
            .where(
                attempts.c.work_key == lease.key,
                attempts.c.attempt == lease.attempt,
                attempts.c.ended_at.is_(None),
            )
            .values(ended_at=now, outcome=outcome)
        )

    def recompute(self, lease: Lease, damaged: str) -> bool:
        """An input is missing or damaged: what made it runs again, and this work waits for it.

        False where no work made it: it was uploaded, and only an upload can bring it back.
        """
        with self.transaction() as connection:
            maker = connection.execute(
                sa.select(work_rows.c.key, work_rows.c.queue).where(
                    work_rows.c.result == damaged, work_rows.c.status == "done"
                )
            ).first()
            if maker is None:
                return False
            self._end_attempt(connection, lease, "an input was damaged", time.time())
            if self._current(lease, connection, status="waiting", waiting_for=1, lease_until=None):
                connection.execute(
                    work_rows.update()
                    .where(work_rows.c.key == maker.key)
                    .values(status="ready", result=None, summary=None, attempt=0, deaths=0)
                )
                self._hold_back(connection, maker.key)
                self._wake(connection, maker.key, maker.queue)
                history.tell_about(connection, [lease.key, maker.key])
            return True

    def _hold_back(self, connection: Connection, key: str) -> None:
        """Others that were about to read a result that is gone wait for it again."""
        readers = sa.select(needs.c.work_key).where(needs.c.needs_key == key)
        connection.execute(
            work_rows.update()
            .where(work_rows.c.key.in_(readers), work_rows.c.status == "ready")
            .values(status="waiting", waiting_for=1)
        )

    # The caller's and the janitor's side.

    def cancel_works(self, connection: Connection, identity: str) -> None:
        """The works of one evaluation and their shards, unless another live one needs them."""
        own = self._with_needs(connection, [identity])
        others = sa.select(evaluations.c.id).where(
            evaluations.c.finished_at.is_(None), evaluations.c.id != identity
        )
        shared = self._with_needs(connection, connection.execute(others).scalars().all())
        alone = own - shared
        connection.execute(
            work_rows.update()
            .where(
                work_rows.c.key.in_(alone), work_rows.c.status.in_(("waiting", "ready", "running"))
            )
            .values(status="canceled", finished_at=time.time(), lease_until=None)
        )
        history.tell_about(connection, alone)
        history.freeze_canceled(connection, identity)

    def _with_needs(self, connection: Connection, identities: Sequence[str]) -> set[str]:
        """The live works of these evaluations, shards included."""
        frontier = set(
            connection.execute(
                sa.select(evaluation_works.c.work_key).where(
                    evaluation_works.c.evaluation_id.in_(identities)
                )
            ).scalars()
        )
        found: set[str] = set()
        while frontier:
            found |= frontier
            below = sa.select(needs.c.needs_key).where(needs.c.work_key.in_(frontier))
            frontier = set(connection.execute(below).scalars()) - found
        return found

    def expire_leases(self) -> int:
        """Works whose worker fell silent: ready again, or failed after the last attempt."""
        query = sa.select(work_rows.c.key, work_rows.c.attempt, work_rows.c.kind).where(
            work_rows.c.status == "running", work_rows.c.lease_until < time.time()
        )
        with self.reading() as connection:
            rows = connection.execute(query).all()
        error = {"code": "worker_lost", "detail": "the worker fell silent"}
        return sum(
            self.fail(
                Lease(row.key, row.attempt, row.kind, {}, (), {}, 0), error, death=False, retry=True
            )
            for row in rows
        )

    def expire_deadlines(self) -> int:
        """Evaluations past their deadline: their own works end with `timeout`."""
        query = sa.select(evaluations.c.id).where(
            evaluations.c.finished_at.is_(None), evaluations.c.deadline < time.time()
        )
        with self.reading() as connection:
            late = connection.execute(query).scalars().all()
        error = json.dumps({"code": "timeout", "detail": "the evaluation's deadline passed"})
        for identity in late:
            with self.transaction() as connection:
                stuck = work_rows.c.status.in_(("waiting", "ready", "running"))
                mine = self._with_needs(connection, [identity])
                connection.execute(
                    work_rows.update()
                    .where(work_rows.c.key.in_(mine), stuck, work_rows.c.deadline < time.time())
                    .values(status="failed", error=error, finished_at=time.time(), lease_until=None)
                )
                history.tell_about(connection, mine)
        return len(late)

    def ready(self, before: float) -> list[tuple[str, str]]:
        """(key, queue) of ready works that were planned before that time."""
        with self.reading() as connection:
            rows = connection.execute(
                sa.select(work_rows.c.key, work_rows.c.queue)
                .where(work_rows.c.status == "ready", work_rows.c.created_at < before)
                .limit(1000)
            ).all()
        return [(row.key, row.queue) for row in rows]

    # What one change means for others.

    def _release_dependents(self, connection: Connection, key: str) -> None:
        waiting = sa.select(needs.c.work_key).where(needs.c.needs_key == key)
        connection.execute(
            work_rows.update()
            .where(work_rows.c.key.in_(waiting), work_rows.c.status == "waiting")
            .values(waiting_for=work_rows.c.waiting_for - 1)
        )
        free = sa.and_(
            work_rows.c.key.in_(waiting),
            work_rows.c.status == "waiting",
            work_rows.c.waiting_for <= 0,
        )
        rows = connection.execute(sa.select(work_rows.c.key, work_rows.c.queue).where(free)).all()
        connection.execute(work_rows.update().where(free).values(status="ready"))
        for row in rows:
            self._wake(connection, row.key, row.queue)

    def _fail_dependents(
        self, connection: Connection, key: str, error: Mapping[str, Any]
    ) -> list[str]:
        """Works that wait for a failed one can never run."""
        touched, frontier = [], [key]
        while frontier:
            dependents = sa.select(needs.c.work_key).where(needs.c.needs_key.in_(frontier))
            stuck = sa.and_(work_rows.c.key.in_(dependents), work_rows.c.status == "waiting")
            frontier = list(connection.execute(sa.select(work_rows.c.key).where(stuck)).scalars())
            reason = {"code": "needs_failed", "detail": f"what it needs failed: {error['detail']}"}
            connection.execute(
                work_rows.update()
                .where(work_rows.c.key.in_(frontier))
                .values(status="failed", error=json.dumps(reason), finished_at=time.time())
            )
            touched += frontier
        return touched

    def _wake(self, connection: Connection, key: str, queue: str) -> None:
        connection.execute(outbox.insert().values(work_key=key, queue=queue))


def _distinct(found: Iterable[Work]) -> list[Work]:
    return list({work.key: work for work in found}.values())
