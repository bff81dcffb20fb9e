"""Expiry of leases and deadlines, and cancellation: tasks end without their worker."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.errors import TaskTimedOut, WorkerLost
from service.contract.plan import tasks
from service.engine import cancellation, history, leases, presence, tenancy
from service.engine.records import Records, in_batches
from service.engine.tables import runs, task_rows

_LOST = {"code": WorkerLost.code}


@tenancy.for_all_teams
def cancel_run(connection: Connection, identity: str) -> None:
    """Cancel a run and those of its tasks and shards that no other unfinished run needs."""
    history.update_runs(connection, cancellation.cancel_tasks(connection, identity))
    history.end_run(connection, identity, "canceled")


def expire_leases(records: Records) -> int:
    """Make tasks whose lease has expired ready again; returns how many."""
    expired = task_rows.c.lease_until < time.time()
    return sum(
        leases.expire_lease(records, key, {**_LOST, "detail": "the worker stopped responding"})
        for key in _running(records, expired)
    )


def end_leases_of_dead_workers(records: Records, home: Path) -> int:
    """Make tasks ready again whose worker on this machine has died; returns how many."""
    ended = 0
    for worker in presence.find_dead_workers(home):
        error = {**_LOST, "detail": "the worker died"}
        for key in _running(records, task_rows.c.worker == worker):
            ended += leases.expire_lease(records, key, error, worker)
    return ended


def _running(records: Records, condition: sa.ColumnElement[bool]) -> Sequence[str]:
    query = sa.select(task_rows.c.key).where(task_rows.c.status == "running", condition)
    return [row.key for row in records.read(query)]


def expire_deadlines(records: Records) -> int:
    """End the tasks of runs past their deadline with `timeout`; returns the number of runs."""
    query = sa.select(runs.c.id).where(runs.c.finished_at.is_(None), runs.c.deadline < time.time())
    late = [row.id for row in records.read(query)]
    error = json.dumps({"code": TaskTimedOut.code, "detail": "the evaluation's deadline passed"})
    for identity in late:
        with records.transaction() as connection:
            unfinished = task_rows.c.status.in_(tasks.UNFINISHED)
            mine = cancellation.find_run_tasks(connection, [identity])
            for batch in in_batches(mine):
                ended = connection.execute(
                    task_rows.update()
                    .where(task_rows.c.key.in_(batch), unfinished)
                    .where(task_rows.c.deadline < time.time())
                    .values(status="failed", error=error, finished_at=time.time(), lease_until=None)
                    .returning(task_rows.c.key)
                )
                cancellation.end_attempts(connection, ended.scalars().all(), TaskTimedOut.code)
            history.update_runs(connection, mine)
    return len(late)
