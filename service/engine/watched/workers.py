"""Which workers there are, and what each of them computes.

Redis knows those that are connected, and the record those that hold a task: a worker whose
connection is cut computes on.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.engine.records import Records, in_batches
from service.engine.tables import needs, run_tasks, runs, task_rows

_EVALUATION = "evaluation"
_DEEPEST = 6  # tasks that need one another, from a part of one to what a run asked for


@dataclass(frozen=True)
class Held:
    """What a worker computes, as a run of the asking team knows it."""

    name: str
    evaluation: str | None  # None: only runs of another kind wait for it


@dataclass(frozen=True)
class WorkerState:
    name: str
    state: Literal["busy", "idle"]
    since: float
    held: Held | None  # None also where no run of the team waits for its task

    @property
    def role(self) -> str:
        return self.name.split("@")[0]


def every(records: Records, connected: Mapping[str, float]) -> list[WorkerState]:
    """All workers by their names. `connected`: those that Redis knows, and since when."""
    with records.reading() as connection:
        holding = _holding(connection)
        held = _held(connection, {row.key: row.kind for row in holding.values()})
    idle = {
        name: WorkerState(name, "idle", since, None)
        for name, since in connected.items()
        if name not in holding
    }
    busy = {
        name: WorkerState(name, "busy", row.started_at, held.get(row.key))
        for name, row in holding.items()
    }
    return sorted([*idle.values(), *busy.values()], key=lambda worker: worker.name)


def _holding(connection: Connection) -> dict[str, Row[Any]]:
    """The task that each busy worker has; of two, the one that it began first."""
    columns = task_rows.c
    of = columns.key, columns.kind, columns.worker, columns.started_at
    query: sa.Select[Any] = sa.select(*of).order_by(columns.started_at.desc())
    alive = columns.status == "running", columns.lease_until >= time.time()
    return {row.worker: row for row in connection.execute(query.where(*alive))}


def _held(connection: Connection, kinds: Mapping[str, str]) -> dict[str, Held]:
    """What unfinished runs of the connection's team call these tasks. A task that none of them
    names is a part of one, or needed by one.
    """
    found: dict[str, Held] = {}
    above = {key: {key} for key in kinds}  # what needs these, at first themselves -> which of them
    for depth in range(_DEEPEST):
        for row in _named(connection, above):
            for key in above[row.task_key]:
                name = kinds[key] if depth else row.name
                found.setdefault(key, Held(name, row.id if row.kind == _EVALUATION else None))
        above = _needing(connection, {at: keys - found.keys() for at, keys in above.items()})
    return found


def _named(connection: Connection, keys: Collection[str]) -> list[Row[Any]]:
    """Unfinished runs that name these tasks, evaluations first."""
    of = run_tasks.c.task_key, run_tasks.c.name, runs.c.id, runs.c.kind
    query: sa.Select[Any] = (
        sa.select(*of)
        .join(runs, runs.c.id == run_tasks.c.run_id)
        .where(runs.c.finished_at.is_(None))
        .order_by(runs.c.kind != _EVALUATION, runs.c.created_at)
    )
    return [
        row
        for batch in in_batches(keys)
        for row in connection.execute(query.where(run_tasks.c.task_key.in_(batch)))
    ]


def _needing(connection: Connection, left: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """The tasks that need these, each with what stands behind it."""
    found: dict[str, set[str]] = {}
    for batch in in_batches(at for at, keys in left.items() if keys):
        query = sa.select(needs).where(needs.c.needs_key.in_(batch))
        for row in connection.execute(query):
            found.setdefault(row.task_key, set()).update(left[row.needs_key])
    return found
