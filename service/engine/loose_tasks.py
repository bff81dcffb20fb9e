"""Loose tasks: no run has them any more, and others may still need them."""

import json
import time
from collections.abc import Collection, Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.plan import tasks
from service.engine import history
from service.engine.records import Records, build_insert, collect_below, in_batches
from service.engine.tables import (
    attempts,
    checkpoints,
    draws,
    loose_tasks,
    needs,
    outbox,
    run_tasks,
    summary_rows,
    task_rows,
    thumbnail_rows,
)

_TASK = "work:"
_OF_UPLOADS = "checkpoint"  # the kind of tasks that an upload keeps: conversions
_AT_ONCE = 100  # tasks that are deleted while all writers wait


def loosen_tasks(connection: Connection, keys: Iterable[str]) -> None:
    """Note tasks that a run or an upload no longer keeps, with all that they have read."""
    now = time.time()
    added = build_insert(connection, loose_tasks).on_conflict_do_nothing()
    for batch in in_batches(sorted(_below(connection, keys))):
        connection.execute(added, [{"task_key": key, "since": now} for key in batch])


def hold_tasks(connection: Connection, keys: Collection[str]) -> None:
    """Note that a run that is submitted has these tasks, too."""
    for batch in in_batches(keys):
        connection.execute(loose_tasks.delete().where(loose_tasks.c.task_key.in_(batch)))


def delete_loose_tasks(records: Records) -> int:
    """Delete loose tasks that nothing needs and that have ended; returns the number."""
    with records.reading() as connection:
        loose = set(connection.execute(sa.select(loose_tasks.c.task_key)).scalars())
        needed = _needed(connection, loose) if loose else set()
    deleted = 0
    keys = sorted(loose)
    for start in range(0, len(keys), _AT_ONCE):
        with records.transaction() as connection:
            deleted += _delete(connection, keys[start : start + _AT_ONCE], needed)
    return deleted


def _needed(connection: Connection, loose: Collection[str]) -> set[str]:
    """Find those of these tasks that a run or an upload has, or that such a task reads."""
    wanted = set(loose)
    kept = _kept(connection, wanted)
    below: dict[str, set[str]] = {}
    query = sa.select(task_rows.c.key, task_rows.c.inputs, task_rows.c.parts)
    for row in connection.execute(query, execution_options={"yield_per": 1000}):
        read = _read(row.inputs, row.parts) & wanted
        if row.key not in loose:
            kept |= read
        elif read:
            below[row.key] = read
    frontier = set(kept)
    while frontier:
        frontier = {key for one in frontier for key in below.get(one, ())} - kept
        kept |= frontier
    return kept


def _kept(connection: Connection, keys: Iterable[str]) -> set[str]:
    """Find those of these tasks that a run or an upload has, or that have not ended."""
    found: set[str] = set()
    for batch in in_batches(keys):
        for column in (run_tasks.c.task_key, thumbnail_rows.c.task_key):
            had = sa.select(column).where(column.in_(batch))
            found |= set(connection.execute(had).scalars())
        these = task_rows.c.key.in_(batch)
        going = sa.select(task_rows.c.key).where(these, task_rows.c.status.in_(tasks.UNFINISHED))
        found |= set(connection.execute(going).scalars())
        made = sa.select(task_rows.c.key, task_rows.c.inputs)
        for row in connection.execute(made.where(these, task_rows.c.kind == _OF_UPLOADS)).all():
            uploads = checkpoints.c.digest.in_(json.loads(row.inputs).values())
            if connection.execute(sa.select(checkpoints.c.digest).where(uploads)).first():
                found.add(row.key)
    return found


def _delete(connection: Connection, batch: Collection[str], needed: Collection[str]) -> int:
    """Delete tasks of a batch that are loose still and that nobody needs. Whoever begins a run
    meanwhile holds its tasks, so that they are loose no more.
    """
    still = sa.select(loose_tasks.c.task_key).where(loose_tasks.c.task_key.in_(batch))
    loose = set(connection.execute(still).scalars())
    kept = (loose & set(needed)) | _kept(connection, loose)
    gone = loose - kept
    going = sa.select(task_rows.c.key).where(
        task_rows.c.key.in_(kept), task_rows.c.status.in_(tasks.UNFINISHED)
    )
    hold_tasks(connection, kept - set(connection.execute(going).scalars()))
    hold_tasks(connection, gone)
    long = sa.select(task_rows.c.summary_id).where(task_rows.c.key.in_(gone))
    connection.execute(summary_rows.delete().where(summary_rows.c.id.in_(long)))
    history.drop_attempts(connection, attempts.c.task_key.in_(gone))
    for table in (draws, needs, outbox):
        connection.execute(table.delete().where(table.c.task_key.in_(gone)))
    return connection.execute(task_rows.delete().where(task_rows.c.key.in_(gone))).rowcount


def _below(connection: Connection, keys: Iterable[str]) -> set[str]:
    """These tasks and all that they have read, directly or not."""

    def read(batch: list[str]) -> set[str]:
        query = sa.select(task_rows.c.inputs, task_rows.c.parts)
        rows = connection.execute(query.where(task_rows.c.key.in_(batch)))
        return {key for row in rows for key in _read(row.inputs, row.parts)}

    return collect_below(keys, read)


def _read(inputs: str, parts: str) -> set[str]:
    """The keys of the tasks that a task has read."""
    if _TASK not in inputs and parts == "[]":
        return set()
    named = {at.removeprefix(_TASK) for at in json.loads(inputs).values() if at.startswith(_TASK)}
    return named | set(json.loads(parts))
