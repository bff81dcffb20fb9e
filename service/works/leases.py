"""Leases: attempts at works. Only the current attempt may change a work.

Every change of a work is one transaction, which also makes waiting works ready, queues them in the
outbox, and updates the runs concerned.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.plan import works
from service.works import graph, history, verdicts
from service.works.records import Records
from service.works.tables import attempts, needs, work_rows

MAX_ATTEMPTS = 3
MAX_DEATHS = 2  # a work that kills so many workers fails for good
LEASE_SECONDS = 12.0  # extended every 3 s; a killed worker's work is ready again after this


@dataclass(frozen=True)
class Lease:
    """One attempt at a work: all that the worker needs, and its deadline."""

    key: str
    attempt: int
    kind: str
    inputs: Mapping[str, str]  # name -> digest of the blob
    parts: tuple[str, ...]  # digests of the shards, in order
    parameters: Mapping[str, Any]
    deadline: float


def take(records: Records, key: str, worker: str) -> Lease | None:
    """Begin an attempt; None if the work is not ready (done, canceled, or another worker's)."""
    now = time.time()
    with records.transaction() as connection:
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
        history.update_runs(connection, [key])
        inputs = json.loads(row.inputs)
        return Lease(
            key=key,
            attempt=row.attempt,
            kind=row.kind,
            inputs={name: _digest(connection, at) for name, at in inputs.items()},
            parts=tuple(_digest(connection, f"work:{part}") for part in json.loads(row.parts)),
            parameters=json.loads(row.parameters),
            deadline=min(row.deadline, now + works.KINDS[row.kind].seconds),
        )


def _digest(connection: Connection, reference: str) -> str:
    if not reference.startswith("work:"):
        return reference
    key = reference.removeprefix("work:")
    query = sa.select(work_rows.c.result).where(work_rows.c.key == key)
    return str(connection.execute(query).scalar_one())


def beat(records: Records, lease: Lease, done: int, total: int) -> bool:
    """Extend the lease and store progress; False if the attempt is no longer current."""
    with records.transaction() as connection:
        alive = _current(lease, connection, lease_until=time.time() + LEASE_SECONDS)
        if alive and total:
            changed = connection.execute(
                work_rows.update()
                .where(
                    work_rows.c.key == lease.key,
                    sa.or_(work_rows.c.done != done, work_rows.c.total != total),
                )
                .values(done=done, total=total)
            ).rowcount
            if changed:
                history.update_runs(connection, [lease.key])
        return alive


def finish(records: Records, lease: Lease, result: str, summary: Mapping[str, Any]) -> bool:
    """Store the result and release waiting works; False if the attempt is no longer current."""
    now = time.time()
    with records.transaction() as connection:
        accepted = _current(
            lease,
            connection,
            status="done",
            result=result,
            summary=json.dumps(dict(summary)),
            error=None,
            finished_at=now,
            lease_until=None,
        )
        _end_attempt(connection, lease, "done" if accepted else "refused: too late", now)
        if accepted:
            graph.release_dependents(connection, lease.key, lease.kind)
            verdicts.update_runs(connection, [lease.key])
        return accepted


def fail(
    records: Records, lease: Lease, error: Mapping[str, Any], *, death: bool, retry: bool
) -> bool:
    """End an attempt with an error: the work is ready again, or failed for good."""
    now = time.time()
    with records.transaction() as connection:
        _end_attempt(connection, lease, str(error.get("code")), now)
        row = connection.execute(
            sa.select(work_rows.c.deaths, work_rows.c.attempt, work_rows.c.queue).where(
                work_rows.c.key == lease.key
            )
        ).one()
        deaths = row.deaths + death
        again = retry and row.attempt < MAX_ATTEMPTS and deaths < MAX_DEATHS
        accepted = _current(
            lease,
            connection,
            status="ready" if again else "failed",
            deaths=deaths,
            error=json.dumps(dict(error)),
            lease_until=None,
            finished_at=None if again else now,
        )
        if accepted and again:
            graph.wake(connection, lease.key, row.queue)
        if accepted:
            touched = [] if again else graph.fail_dependents(connection, lease.key, error)
            history.update_runs(connection, [lease.key, *touched])
        return accepted


def make_unavailable(records: Records, lease: Lease, reason: Mapping[str, Any]) -> bool:
    """End a work whose metric cannot be computed here, and those that need it; no run fails."""
    now = time.time()
    with records.transaction() as connection:
        _end_attempt(connection, lease, str(reason.get("code")), now)
        accepted = _current(
            lease,
            connection,
            status="unavailable",
            error=json.dumps(dict(reason)),
            lease_until=None,
            finished_at=now,
        )
        if accepted:
            touched = graph.end_dependents(connection, lease.key, "unavailable", reason, reason)
            verdicts.update_runs(connection, [lease.key, *touched])
        return accepted


def hand_back(records: Records, lease: Lease) -> None:
    """Make a work ready again because its worker stops."""
    with records.transaction() as connection:
        _end_attempt(connection, lease, "handed back", time.time())
        if _current(lease, connection, status="ready", lease_until=None):
            queue = works.KINDS[lease.kind].queue
            graph.wake(connection, lease.key, queue)
            history.update_runs(connection, [lease.key])


def recompute(records: Records, lease: Lease, damaged: str) -> bool:
    """Run the work again that made a missing or damaged input; this work waits for it.

    False if no work made the input: then it was uploaded, and must be uploaded again.
    """
    with records.transaction() as connection:
        maker = connection.execute(
            sa.select(work_rows.c.key, work_rows.c.queue).where(
                work_rows.c.result == damaged, work_rows.c.status == "done"
            )
        ).first()
        if maker is None:
            return False
        _end_attempt(connection, lease, "an input was damaged", time.time())
        if _current(lease, connection, status="waiting", waiting_for=1, lease_until=None):
            # The input may be given by its digest, without the work that made it.
            records.add_new(connection, needs, work_key=lease.key, needs_key=maker.key)
            connection.execute(
                work_rows.update()
                .where(work_rows.c.key == maker.key)
                .values(status="ready", result=None, summary=None, attempt=0, deaths=0)
            )
            graph.wait_for(connection, maker.key)
            graph.wake(connection, maker.key, maker.queue)
            history.update_runs(connection, [lease.key, maker.key])
        return True


def _current(lease: Lease, connection: Connection, **values: Any) -> bool:
    """Change the work if this attempt is the current one; returns whether it is."""
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


def _end_attempt(connection: Connection, lease: Lease, outcome: str, now: float) -> None:
    connection.execute(
        attempts.update()
        .where(
            attempts.c.work_key == lease.key,
            attempts.c.attempt == lease.attempt,
            attempts.c.ended_at.is_(None),
        )
        .values(ended_at=now, outcome=outcome)
    )
