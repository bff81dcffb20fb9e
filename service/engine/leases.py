"""Leases: attempts at tasks. Only the current attempt may change a task.

Every change of a task is one transaction, which also makes waiting tasks ready, queues them in the
outbox, and updates the runs concerned.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract.plan import tasks
from service.engine import charges, graph, history, summaries, turns
from service.engine.records import Records
from service.engine.tables import attempts, task_rows

MAX_FAILURES = 3  # attempts that end with an error of the task
MAX_DEATHS = 2  # a task that kills its child so often fails for good
MAX_LOSSES = 20  # attempts that are ended from outside: killed, stopped, cut off
# Extended every second; what a silent worker held is ready again after this. The worker's own clock
# (`workers/runtime/runner.py`) reads it, too.
LEASE_SECONDS = 12.0


@dataclass(frozen=True)
class Lease:
    """One attempt at a task: all that the worker needs, and its deadline.

    `id` is the attempt's own for ever. `attempt` is its number, which begins anew with the task.
    """

    id: int
    key: str
    attempt: int
    kind: str
    inputs: Mapping[str, str]  # name -> digest of the blob
    parts: tuple[str, ...]  # digests of the shards, in order
    parameters: Mapping[str, Any]
    deadline: float
    short: bool
    queue: str = ""
    waited: float = 0.0  # seconds that the task was ready before
    traceparent: str | None = None  # of the request that asked for it, where that is traced


def lease_first_task(
    records: Records, queue: str, worker: str, *, short: bool = False
) -> Lease | None:
    """Begin an attempt at the ready task of a queue whose turn it is; None if none is ready.

    `short`: of the short tasks alone, which passes those before it and does not move the clock.
    """
    with records.transaction() as connection:
        while (key := turns.choose_first_task(connection, queue, short=short)) is not None:
            lease = begin_attempt(records, connection, key, worker, passes=short)
            if lease is not None:
                return lease
        return None


def begin_attempt(
    records: Records, connection: Connection, key: str, worker: str, *, passes: bool = False
) -> Lease | None:
    """An attempt at one task; None if it is not ready (done, canceled, or another worker's)."""
    ready = sa.select(task_rows).where(task_rows.c.key == key, task_rows.c.status == "ready")
    row = connection.execute(ready).first()
    if row is None or graph.wait_for_needs(records, connection, key):
        return None
    now = time.time()
    attempt = {"task_key": key, "attempt": row.attempt + 1, "worker": worker}
    begun = attempts.insert().values(**attempt, started_at=now).returning(attempts.c.id)
    lease = _lease(connection, row, connection.execute(begun).scalar_one(), now)
    current = {"attempt": lease.attempt, "lease": lease.id, "worker": worker}
    current |= {"lease_until": now + LEASE_SECONDS, "started_at": now, "done": 0, "total": 0}
    graph.change_task(connection, key, status="running", **current)
    if not passes:
        turns.move_clock(connection, row.queue, row.turn)
    history.update_runs(connection, [key])
    return lease


def _lease(connection: Connection, row: Row[Any], identity: int, now: float) -> Lease:
    inputs = json.loads(row.inputs)
    return Lease(
        id=identity,
        key=row.key,
        attempt=row.attempt + 1,
        kind=row.kind,
        inputs={name: _digest(connection, at) for name, at in inputs.items()},
        parts=tuple(_digest(connection, f"work:{part}") for part in json.loads(row.parts)),
        parameters=json.loads(row.parameters),
        deadline=min(row.deadline, now + tasks.KINDS[row.kind].seconds),
        short=row.short,
        queue=row.queue,
        waited=max(0.0, now - (row.ready_at or row.created_at)),
        traceparent=row.traceparent,
    )


def _digest(connection: Connection, reference: str) -> str:
    if not reference.startswith("work:"):
        return reference
    key = reference.removeprefix("work:")
    query = sa.select(task_rows.c.result).where(task_rows.c.key == key)
    return str(connection.execute(query).scalar_one())


def extend_lease(records: Records, lease: Lease) -> bool:
    """Extend the lease; False if the attempt is no longer current."""
    with records.changing_own_row() as connection:
        until = time.time() + LEASE_SECONDS
        return _current(connection, lease.key, lease.id, lease_until=until)


def store_progress(records: Records, lease: Lease, done: int, total: int) -> None:
    """Store how far the attempt is, and tell its runs, if it is current."""
    with records.transaction() as connection:
        if _current(connection, lease.key, lease.id, done=done, total=total):
            history.update_runs(connection, [lease.key])


def finish_attempt(records: Records, lease: Lease, result: str, summary: Mapping[str, Any]) -> bool:
    """Store the result and release waiting tasks; False if the attempt is no longer current."""
    now = time.time()
    with records.transaction() as connection:
        accepted = _current(
            connection,
            lease.key,
            lease.id,
            status="done",
            done=task_rows.c.total,  # whatever the last beat told
            result=result,
            error=None,
            finished_at=now,
            lease_until=None,
        )
        _end_attempt(connection, lease.id, "done" if accepted else "refused: too late", now)
        if accepted:
            charges.charge_attempts(connection, [lease.key], now)
            short = summaries.store_draws(connection, lease.key, summary)
            kept = summaries.store_summary(connection, short)
            graph.change_task(connection, lease.key, **kept)
            graph.release_dependents(connection, lease.key)
            graph.forget_needs(connection, lease.key)
            history.update_runs(connection, [lease.key])
        return accepted


def fail_attempt(
    records: Records, lease: Lease, error: Mapping[str, Any], *, death: bool, retry: bool
) -> bool:
    """End an attempt with an error of the task: it is ready again, or failed for good."""
    with records.transaction() as connection:
        row = _of(connection, lease.key)
        failures, deaths = row.failures + 1, row.deaths + death
        again = retry and failures < MAX_FAILURES and deaths < MAX_DEATHS
        charges.charge_attempts(connection, [lease.key], time.time())
        counted = {"failures": failures, "deaths": deaths}
        return _end_badly(connection, lease.id, row, error, counted, again=again)


def lose_attempt(records: Records, lease: Lease, error: Mapping[str, Any], *, killed: bool) -> bool:
    """End an attempt that was ended from outside, which is no failure of the task."""
    with records.transaction() as connection:
        return _lose(connection, lease.id, _of(connection, lease.key), error, killed=killed)


def expire_lease(
    records: Records, key: str, error: Mapping[str, Any], worker: str | None = None
) -> bool:
    """End a task's attempt if its lease has expired, or if this worker, now dead, has it."""
    with records.transaction() as connection:
        over = task_rows.c.worker == worker
        if worker is None:
            over = task_rows.c.lease_until < time.time()
        running = sa.and_(task_rows.c.key == key, task_rows.c.status == "running", over)
        row = connection.execute(sa.select(task_rows).where(running)).first()
        return row is not None and _lose(connection, row.lease, row, error, killed=True)


def _lose(
    connection: Connection,
    identity: int | None,
    row: Row[Any],
    error: Mapping[str, Any],
    *,
    killed: bool,
) -> bool:
    """Being killed twice at the same place counts as a death: not everything that kills is seen."""
    place = f"{row.done} of {row.total}" if killed and row.done else None
    deaths = row.deaths + (place is not None and place == row.lost_at)
    losses = row.losses + 1
    again = deaths < MAX_DEATHS and losses < MAX_LOSSES
    counted = {"losses": losses, "deaths": deaths, "lost_at": place}
    return _end_badly(connection, identity, row, error, counted, again=again)


def _end_badly(
    connection: Connection,
    identity: int | None,
    row: Row[Any],
    error: Mapping[str, Any],
    counted: Mapping[str, Any],
    *,
    again: bool,
) -> bool:
    now = time.time()
    _end_attempt(connection, identity, str(error.get("code")), now)
    accepted = _current(
        connection,
        row.key,
        identity,
        status="ready" if again else "failed",
        error=json.dumps(dict(error)),
        lease_until=None,
        finished_at=None if again else now,
        **counted,
    )
    if accepted and again:
        graph.wake_task(connection, row.key, row.queue)
    if accepted:
        touched = [] if again else graph.fail_dependents(connection, row.key, error)
        history.update_runs(connection, [row.key, *touched])
    return accepted


def _of(connection: Connection, key: str) -> Row[Any]:
    return connection.execute(sa.select(task_rows).where(task_rows.c.key == key)).one()


def make_task_unavailable(records: Records, lease: Lease, reason: Mapping[str, Any]) -> bool:
    """End a task whose metric cannot be computed here, and those that need it; no run fails."""
    now = time.time()
    with records.transaction() as connection:
        _end_attempt(connection, lease.id, str(reason.get("code")), now)
        accepted = _current(
            connection,
            lease.key,
            lease.id,
            status="unavailable",
            error=json.dumps(dict(reason)),
            lease_until=None,
            finished_at=now,
        )
        if accepted:
            touched = graph.end_dependents(connection, lease.key, "unavailable", reason, reason)
            history.update_runs(connection, [lease.key, *touched])
        return accepted


def hand_back_task(records: Records, lease: Lease, *, is_long: bool = False) -> None:
    """Make a task ready again; `is_long`: it has taken more than a short one may."""
    outcome = "not short" if is_long else "handed back"
    with records.transaction() as connection:
        _end_attempt(connection, lease.id, outcome, time.time())
        values: dict[str, Any] = {"status": "ready", "lease_until": None}
        if is_long:
            values["short"] = False
        if _current(connection, lease.key, lease.id, **values):
            if is_long:
                charges.charge_attempts(connection, [lease.key], time.time())
            queue = tasks.KINDS[lease.kind].queue
            graph.wake_task(connection, lease.key, queue)
            history.update_runs(connection, [lease.key])


def recompute_input(records: Records, lease: Lease, damaged: str) -> bool:
    """Run the task again that made a missing or damaged input; this task waits for it.

    False if no task made the input: then it was uploaded, and must be uploaded again.
    """
    with records.transaction() as connection:
        made = graph.recompute_result(records, connection, lease.key, damaged)
        if not made and damaged in _inputs(connection, _of(connection, lease.key)):
            return False
        _end_attempt(connection, lease.id, "an input was damaged", time.time())
        status = "waiting" if made else "ready"  # somebody else has had it made again
        if _current(connection, lease.key, lease.id, status=status, lease_until=None):
            if made:
                graph.count_needs(connection, lease.key)
            else:
                graph.wake_task(connection, lease.key, tasks.KINDS[lease.kind].queue)
            history.update_runs(connection, [lease.key])
        return True


def _inputs(connection: Connection, row: Row[Any]) -> set[str]:
    """The digests that an attempt at this task would read now."""
    references = [*json.loads(row.inputs).values()]
    references += [f"work:{part}" for part in json.loads(row.parts)]
    return {_digest(connection, at) for at in references}


def _current(connection: Connection, key: str, identity: int | None, **values: Any) -> bool:
    """Change the task if this attempt is the current one; returns whether it is."""
    is_running = task_rows.c.key == key, task_rows.c.status == "running"
    current = task_rows.update().where(
        *is_running, task_rows.c.lease.is_not_distinct_from(identity)
    )
    return connection.execute(current.values(**values)).rowcount == 1


def _end_attempt(connection: Connection, identity: int | None, outcome: str, now: float) -> None:
    unended = attempts.update().where(attempts.c.id == identity, attempts.c.ended_at.is_(None))
    connection.execute(unended.values(ended_at=now, outcome=outcome))
