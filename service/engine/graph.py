"""Graph of tasks: changes of one that change those that need it, or that it needs."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.runs import TaskStatus
from service.contract.plan import tasks
from service.engine import history
from service.engine.records import Records, in_batches
from service.engine.tables import needs, outbox, task_rows

FRESH: Mapping[str, Any] = {  # what is forgotten when a task begins anew; attempts keep their ids
    **dict.fromkeys(("attempt", "failures", "deaths", "losses", "done", "total"), 0),
    **dict.fromkeys(("lost_at", "lease", "lease_until", "started_at", "finished_at", "error")),
}


def change_task(connection: Connection, key: str, **values: Any) -> None:
    connection.execute(task_rows.update().where(task_rows.c.key == key).values(**values))


def wake_task(connection: Connection, key: str, queue: str) -> None:
    """Queue a ready task."""
    connection.execute(outbox.insert().values(task_key=key, queue=queue))
    now = time.time()
    change_task(connection, key, rung_at=now, ready_at=now)


def release_dependents(connection: Connection, key: str) -> None:
    """Make tasks ready that waited for this one, if all else that they need is done too.

    `waiting_for` spares looking at all needs each time. It may be too low, since a need may be made
    again; so what seems free is looked at.
    """
    dependents = sa.select(needs.c.task_key).where(needs.c.needs_key == key)
    waiting = sa.and_(task_rows.c.key.in_(dependents), task_rows.c.status == "waiting")
    connection.execute(
        task_rows.update().where(waiting).values(waiting_for=task_rows.c.waiting_for - 1)
    )
    free = sa.and_(waiting, task_rows.c.waiting_for <= 0)
    need = task_rows.alias()
    unfinished = (
        sa.select(needs.c.task_key)
        .join(need, need.c.key == needs.c.needs_key)
        .join(task_rows, task_rows.c.key == needs.c.task_key)
        .where(free, need.c.status != "done")
        .distinct()
    )
    for waits in connection.execute(unfinished).scalars().all():
        count_needs(connection, waits)
    query = sa.select(task_rows.c.key, task_rows.c.queue).where(free)
    rows = connection.execute(query.order_by(task_rows.c.created_at)).all()
    if rows:
        now = time.time()
        released = {"status": "ready", "rung_at": now, "ready_at": now}
        connection.execute(task_rows.update().where(free).values(**released))
        woken = [{"task_key": row.key, "queue": row.queue} for row in rows]
        connection.execute(outbox.insert(), woken)


def count_needs(connection: Connection, key: str) -> int:
    """Store how many needs of a waiting task are not done; returns it."""
    query = (
        sa.select(sa.func.count())
        .join_from(needs, task_rows, task_rows.c.key == needs.c.needs_key)
        .where(needs.c.task_key == key, task_rows.c.status != "done")
    )
    count = connection.execute(query).scalar_one()
    change_task(connection, key, waiting_for=count)
    return count


def forget_needs(connection: Connection, key: str) -> None:
    """Delete the needs of a task that is done: its inputs and parts name what it needed."""
    connection.execute(needs.delete().where(needs.c.task_key == key))


def _remember_needs(records: Records, connection: Connection, key: str) -> None:
    """Store the needs of a task that begins anew, from its inputs and parts."""
    columns = task_rows.c.inputs, task_rows.c.parts
    row = connection.execute(sa.select(*columns).where(task_rows.c.key == key)).one()
    inputs = [at for at in json.loads(row.inputs).values() if at.startswith("work:")]
    for need in [*(at.removeprefix("work:") for at in inputs), *json.loads(row.parts)]:
        records.add_new(connection, needs, task_key=key, needs_key=need)


def fail_dependents(connection: Connection, key: str, error: Mapping[str, Any]) -> list[str]:
    """Fail the tasks that wait for a failed one; a sharded task gets its shard's error."""
    reason = {"code": "needs_failed", "detail": f"what it needs failed: {error['detail']}"}
    return end_dependents(connection, key, "failed", error, reason)


def end_dependents(
    connection: Connection,
    key: str,
    status: TaskStatus,
    error: Mapping[str, Any],
    reason: Mapping[str, Any],
) -> list[str]:
    """End the tasks that wait for `key`, with `error` if it is their shard, else with `reason`."""
    kind = sa.select(task_rows.c.kind).where(task_rows.c.key == key).scalar_subquery()
    touched, frontier = [], [key]
    while frontier:
        dependents = _waiting_for(connection, frontier)
        shown = sa.case(
            (task_rows.c.kind == kind, json.dumps(dict(error))), else_=json.dumps(dict(reason))
        )
        ended = {"status": status, "error": shown, "finished_at": time.time()}
        for batch in in_batches(dependents):
            these = task_rows.update().where(task_rows.c.key.in_(batch))
            connection.execute(these.values(**ended))
        touched += dependents
        frontier = dependents
    _cancel_shards(connection, touched)
    return touched


def _waiting_for(connection: Connection, keys: Sequence[str]) -> list[str]:
    """The tasks that wait for any of these."""
    found: dict[str, None] = {}
    for batch in in_batches(keys):
        dependents = sa.select(needs.c.task_key).where(needs.c.needs_key.in_(batch))
        waiting = sa.and_(task_rows.c.key.in_(dependents), task_rows.c.status == "waiting")
        query = sa.select(task_rows.c.key).where(waiting)
        found |= dict.fromkeys(connection.execute(query).scalars())
    return list(found)


def _cancel_shards(connection: Connection, failed: Sequence[str]) -> None:
    """Cancel the other shards of tasks that have failed."""
    parts: list[str] = []
    for batch in in_batches(failed):
        query = sa.select(task_rows.c.parts).where(task_rows.c.key.in_(batch))
        parts += [key for text in connection.execute(query).scalars() for key in json.loads(text)]
    for batch in in_batches(parts):
        these = task_rows.c.key.in_(batch), task_rows.c.status.in_(("waiting", "ready"))
        ended = task_rows.update().where(*these)
        connection.execute(ended.values(status="canceled", finished_at=time.time()))


def recompute_result(records: Records, connection: Connection, reader: str, damaged: str) -> bool:
    """Make a damaged result again, for `reader`, which from now on needs the task that makes it.

    False if no task made it. If another reader has found the damage before, it is being made.
    """
    known = sa.select(needs.c.needs_key).where(needs.c.task_key == reader)
    makes = task_rows.c.result == damaged, task_rows.c.status.in_((*tasks.UNFINISHED, "done"))
    query = sa.select(task_rows.c.key, task_rows.c.status).where(*makes)
    maker = connection.execute(query.order_by(task_rows.c.key.in_(known).desc())).first()
    if maker is None:
        return False
    # The input may be given by its digest, without the task that made it.
    records.add_new(connection, needs, task_key=reader, needs_key=maker.key)
    deadline = sa.select(task_rows.c.deadline).where(task_rows.c.key == reader)
    until = connection.execute(deadline).scalar_one()
    if maker.status == "done":
        _begin_anew(records, connection, maker.key, until)
    else:
        _extend(connection, maker.key, until)
    return True


def _begin_anew(records: Records, connection: Connection, key: str, deadline: float) -> None:
    """Begin an ended task anew, and those that it needs and that are not there (any more).

    Its result stays, so that others who find it damaged know who makes it.
    """
    change_task(connection, key, status="waiting", summary=None, summary_id=None, **FRESH)
    _extend(connection, key, deadline)
    _remember_needs(records, connection, key)
    _begin_needs(records, connection, key, deadline)
    if not count_needs(connection, key):
        begun = task_rows.update().where(task_rows.c.key == key).values(status="ready")
        queue = connection.execute(begun.returning(task_rows.c.queue)).scalar_one()
        wake_task(connection, key, queue)
    _wait_for(connection, key)
    history.update_runs(connection, [key])


def _begin_needs(records: Records, connection: Connection, key: str, deadline: float) -> None:
    """Begin those needs of a task anew that have ended without a result."""
    need = sa.select(needs.c.needs_key).where(needs.c.task_key == key)
    gone = task_rows.c.key.in_(need), task_rows.c.status.in_(tasks.RESTARTED)
    for lost in connection.execute(sa.select(task_rows.c.key).where(*gone)).scalars().all():
        _begin_anew(records, connection, lost, deadline)


def _extend(connection: Connection, key: str, deadline: float) -> None:
    earlier = sa.and_(task_rows.c.key == key, task_rows.c.deadline < deadline)
    connection.execute(task_rows.update().where(earlier).values(deadline=deadline))


def _wait_for(connection: Connection, key: str) -> None:
    """Make ready tasks that read the result of `key` wait for it again."""
    readers = sa.select(needs.c.task_key).where(needs.c.needs_key == key)
    ready = task_rows.c.key.in_(readers), task_rows.c.status == "ready"
    connection.execute(task_rows.update().where(*ready).values(status="waiting", waiting_for=1))


def wait_for_needs(records: Records, connection: Connection, key: str) -> bool:
    """Let a ready task wait if something that it needs is not done; returns whether it waits."""
    if not count_needs(connection, key):
        return False
    waiting = task_rows.update().where(task_rows.c.key == key).values(status="waiting")
    until = connection.execute(waiting.returning(task_rows.c.deadline)).scalar_one()
    _begin_needs(records, connection, key, until)
    return True
