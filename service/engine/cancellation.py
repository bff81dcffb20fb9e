"""Cancellation: the tasks of a run that no other unfinished run needs."""

import time
from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.plan import tasks
from service.engine import charges
from service.engine.records import collect_below, in_batches
from service.engine.tables import attempts, needs, run_tasks, runs, task_rows

GIVEN_UP = "given up"  # how attempts at a canceled task end


def find_run_tasks(connection: Connection, identities: Sequence[str]) -> set[str]:
    """The keys of all tasks of these runs, with shards."""
    named = sa.select(run_tasks.c.task_key).where(run_tasks.c.run_id.in_(identities))
    return _below(connection, set(connection.execute(named).scalars()))


def _below(connection: Connection, keys: set[str]) -> set[str]:
    """These tasks and all that they need, directly or not."""

    def read(batch: list[str]) -> set[str]:
        query = sa.select(needs.c.needs_key).where(needs.c.task_key.in_(batch))
        return set(connection.execute(query).scalars())

    return collect_below(keys, read)


def cancel_tasks(connection: Connection, identity: str) -> set[str]:
    """Cancel the tasks and shards of a run that no other unfinished run needs; their keys."""
    own = find_run_tasks(connection, [identity])
    alone = own - _below(connection, _needed_by_others(connection, identity, own))
    for batch in in_batches(alone):
        running = task_rows.c.key.in_(batch), task_rows.c.status == "running"
        begun = connection.execute(sa.select(task_rows.c.key).where(*running)).scalars().all()
        charges.charge_attempts(connection, begun, time.time())
        these = task_rows.c.key.in_(batch), task_rows.c.status.in_(tasks.UNFINISHED)
        ended = {"status": "canceled", "finished_at": time.time(), "lease_until": None}
        connection.execute(task_rows.update().where(*these).values(**ended))
        end_attempts(connection, batch, GIVEN_UP)
    return alone


def end_attempts(connection: Connection, keys: Sequence[str], outcome: str) -> None:
    """End the attempts at these tasks that have not ended, since nobody wants their results."""
    unended = attempts.c.task_key.in_(keys), attempts.c.ended_at.is_(None)
    ended = attempts.update().where(*unended)
    connection.execute(ended.values(ended_at=time.time(), outcome=outcome))


def _needed_by_others(connection: Connection, identity: str, own: set[str]) -> set[str]:
    """Tasks of a run that other runs ask for, or that other unfinished tasks need."""
    found, above = set(), defaultdict(set)
    for batch in in_batches(own):
        asked = (
            sa.select(run_tasks.c.task_key)
            .join(runs, runs.c.id == run_tasks.c.run_id)
            .where(run_tasks.c.task_key.in_(batch), runs.c.id != identity)
            .where(runs.c.finished_at.is_(None))
        )
        found |= set(connection.execute(asked).scalars())
        query = sa.select(needs.c.task_key, needs.c.needs_key).where(needs.c.needs_key.in_(batch))
        for row in connection.execute(query):
            above[row.task_key].add(row.needs_key)
    others = above.keys() - own
    for batch in in_batches(others):
        statuses = sa.select(task_rows.c.key, task_rows.c.status)
        for row in connection.execute(statuses.where(task_rows.c.key.in_(batch))):
            if row.status in tasks.UNFINISHED:
                found |= above[row.key]
    return found
