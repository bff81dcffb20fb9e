"""Changes of a work's state that change works that need it, or that it needs."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.plan import works
from service.contract.plan.works import WorkStatus
from service.works.tables import needs, outbox, run_works, runs, work_rows


def wake(connection: Connection, key: str, queue: str, *, first: bool = True) -> None:
    """Queue a ready work; `first`: at the queue's front, so that begun runs end before new ones."""
    connection.execute(outbox.insert().values(work_key=key, queue=queue, first=first))


def release_dependents(connection: Connection, key: str, kind: str) -> None:
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
    query = sa.select(work_rows.c.key, work_rows.c.queue).where(free)
    rows = connection.execute(query.order_by(work_rows.c.created_at)).all()
    connection.execute(work_rows.update().where(free).values(status="ready"))
    for row in rows:
        wake(connection, row.key, row.queue, first=not works.KINDS[kind].opens)


def fail_dependents(connection: Connection, key: str, error: Mapping[str, Any]) -> list[str]:
    """Fail the works that wait for a failed one; a sharded work gets its shard's error."""
    reason = {"code": "needs_failed", "detail": f"what it needs failed: {error['detail']}"}
    return end_dependents(connection, key, "failed", error, reason)


def end_dependents(
    connection: Connection,
    key: str,
    status: WorkStatus,
    error: Mapping[str, Any],
    reason: Mapping[str, Any],
) -> list[str]:
    """End the works that wait for `key`, with `error` if it is their shard, else with `reason`."""
    kind = sa.select(work_rows.c.kind).where(work_rows.c.key == key).scalar_subquery()
    touched, frontier = [], [key]
    while frontier:
        dependents = sa.select(needs.c.work_key).where(needs.c.needs_key.in_(frontier))
        waiting = sa.and_(work_rows.c.key.in_(dependents), work_rows.c.status == "waiting")
        frontier = list(connection.execute(sa.select(work_rows.c.key).where(waiting)).scalars())
        shown = sa.case(
            (work_rows.c.kind == kind, json.dumps(dict(error))), else_=json.dumps(dict(reason))
        )
        connection.execute(
            work_rows.update()
            .where(work_rows.c.key.in_(frontier))
            .values(status=status, error=shown, finished_at=time.time())
        )
        touched += frontier
    _cancel_shards(connection, touched)
    return touched


def _cancel_shards(connection: Connection, failed: Sequence[str]) -> None:
    """Cancel the other shards of works that have failed."""
    query = sa.select(work_rows.c.parts).where(work_rows.c.key.in_(failed))
    parts = [key for text in connection.execute(query).scalars() for key in json.loads(text)]
    connection.execute(
        work_rows.update()
        .where(work_rows.c.key.in_(parts), work_rows.c.status.in_(("waiting", "ready")))
        .values(status="canceled", finished_at=time.time())
    )


def wait_for(connection: Connection, key: str) -> None:
    """Make ready works that read the result of `key` wait for it again."""
    readers = sa.select(needs.c.work_key).where(needs.c.needs_key == key)
    connection.execute(
        work_rows.update()
        .where(work_rows.c.key.in_(readers), work_rows.c.status == "ready")
        .values(status="waiting", waiting_for=1)
    )


def with_needs(connection: Connection, identities: Sequence[str]) -> set[str]:
    """The keys of all works of these runs, with shards."""
    frontier = set(
        connection.execute(
            sa.select(run_works.c.work_key).where(run_works.c.run_id.in_(identities))
        ).scalars()
    )
    found: set[str] = set()
    while frontier:
        found |= frontier
        below = sa.select(needs.c.needs_key).where(needs.c.work_key.in_(frontier))
        frontier = set(connection.execute(below).scalars()) - found
    return found


def cancel_works(connection: Connection, identity: str) -> set[str]:
    """Cancel a run's works and shards that no other unfinished run needs; returns the keys of these
    works.
    """
    own = with_needs(connection, [identity])
    others = sa.select(runs.c.id).where(runs.c.finished_at.is_(None), runs.c.id != identity)
    alone = own - with_needs(connection, connection.execute(others).scalars().all())
    connection.execute(
        work_rows.update()
        .where(work_rows.c.key.in_(alone), work_rows.c.status.in_(("waiting", "ready", "running")))
        .values(status="canceled", finished_at=time.time(), lease_until=None)
    )
    return alone
