"""Ends works without their worker: canceled, lease expired, deadline passed."""

import json
import time

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.errors import TimedOut, WorkerLost
from service.works import graph, history, leases
from service.works.records import Records
from service.works.tables import runs, work_rows


def cancel(connection: Connection, identity: str) -> None:
    """Cancel a run and those of its works and shards that no other unfinished run needs."""
    history.update_runs(connection, graph.cancel_works(connection, identity))
    history.end_run(connection, identity, "canceled")


def expire_leases(records: Records) -> int:
    """Make works whose lease has expired ready again, or failed after the last attempt."""
    query = sa.select(work_rows.c.key, work_rows.c.attempt, work_rows.c.kind).where(
        work_rows.c.status == "running", work_rows.c.lease_until < time.time()
    )
    with records.reading() as connection:
        rows = connection.execute(query).all()
    error = {"code": WorkerLost.code, "detail": "the worker stopped responding"}
    return sum(
        leases.fail(
            records,
            leases.Lease(row.key, row.attempt, row.kind, {}, (), {}, 0),
            error,
            death=False,
            retry=True,
        )
        for row in rows
    )


def expire_deadlines(records: Records) -> int:
    """End the works of runs past their deadline with `timeout`; returns the number of runs."""
    query = sa.select(runs.c.id).where(runs.c.finished_at.is_(None), runs.c.deadline < time.time())
    with records.reading() as connection:
        late = connection.execute(query).scalars().all()
    error = json.dumps({"code": TimedOut.code, "detail": "the evaluation's deadline passed"})
    for identity in late:
        with records.transaction() as connection:
            unfinished = work_rows.c.status.in_(("waiting", "ready", "running"))
            mine = graph.with_needs(connection, [identity])
            connection.execute(
                work_rows.update()
                .where(work_rows.c.key.in_(mine), unfinished, work_rows.c.deadline < time.time())
                .values(status="failed", error=error, finished_at=time.time(), lease_until=None)
            )
            history.update_runs(connection, mine)
    return len(late)
