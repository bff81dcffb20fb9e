"""Fleet: tasks of queues, workers, their plug-ins, the last backup and janitor's round. For the
tasks of one team, the rows of all tasks with these statuses are read.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.runs import TaskStatus
from prescore.models.workers_and_queues import IDLE_SECONDS
from service.contract.formats.plugins import InstalledPlugin
from service.contract.plan.tasks import QUEUES
from service.engine.records import Records, in_batches
from service.engine.tables import moment_rows, needs, plugins, run_tasks, runs, task_rows

QUEUE_NAMES = tuple(queue for queues in QUEUES.values() for queue in queues)
# As in the index's own condition: a plan that is made before values are known needs it there.
_READY = sa.text("status = 'ready'")


def count_tasks(
    connection: Connection, *statuses: TaskStatus, payer: str | None = None
) -> Mapping[tuple[str, str], int]:
    """The number of tasks by queue and status, 0 too; `payer`: of this team's alone."""
    of = task_rows.c.queue, task_rows.c.status
    query = sa.select(*of, sa.func.count()).group_by(*of)
    query = query.where(task_rows.c.queue.in_(QUEUE_NAMES), task_rows.c.status.in_(statuses))
    if payer is not None:
        query = query.where(task_rows.c.payer == payer)
    found = {(queue, status): count for queue, status, count in connection.execute(query)}
    return {pair: found.get(pair, 0) for pair in product(QUEUE_NAMES, statuses)}


def find_longest_ready(connection: Connection, now: float) -> Mapping[str, float | None]:
    """Find how many seconds the longest ready task of each queue has been ready."""
    first = sa.func.min(task_rows.c.ready_at)
    found: dict[str, float | None] = {}
    for queue in QUEUE_NAMES:
        query = sa.select(first).where(task_rows.c.queue == queue, _READY)
        since = connection.execute(query).scalar()
        found[queue] = None if since is None else max(0.0, now - since)
    return found


_EVALUATION = "evaluation"
_DEEPEST = 6  # tasks that need one another, from a part of one to what a run asked for


@dataclass(frozen=True)
class CurrentTask:
    """The task that a worker computes, as a run of the asking team knows it."""

    name: str
    evaluation: str | None  # None: only runs of another kind wait for it


@dataclass(frozen=True)
class WorkerState:
    name: str
    state: Literal["busy", "idle", "not_answering"]
    since: float
    held: CurrentTask | None  # None also where no run of the team waits for its task

    @property
    def role(self) -> str:
        return self.name.split("@")[0]


def list_workers(records: Records, connected: Mapping[str, float], now: float) -> list[WorkerState]:
    """All workers by their names. `connected`: those that Redis knows, and since when."""
    with records.reading() as connection:
        holding = _holding(connection)
        held = _held(connection, {row.key: row.kind for row in holding.values()})
        ready = find_longest_ready(connection, now)
    workers = {}
    for name, since in connected.items():
        waits = max(ready[queue] or 0.0 for queue in QUEUES[name.split("@")[0]])
        lasts = min(waits, now - since)  # who has just come cannot have taken it before
        state: Literal["idle", "not_answering"] = (
            "not_answering" if lasts > IDLE_SECONDS else "idle"
        )
        workers[name] = WorkerState(name, state, since, None)
    for name, row in holding.items():
        is_heard = row.lease_until >= now
        workers[name] = WorkerState(
            name, "busy" if is_heard else "not_answering", row.started_at, held.get(row.key)
        )
    return sorted(workers.values(), key=lambda worker: worker.name)


def _holding(connection: Connection) -> dict[str, Row[Any]]:
    """The task that each worker has; of two, the one that it began first."""
    columns = task_rows.c
    of = columns.key, columns.kind, columns.worker, columns.started_at, columns.lease_until
    query: sa.Select[Any] = sa.select(*of).order_by(columns.started_at.desc())
    return {row.worker: row for row in connection.execute(query.where(columns.status == "running"))}


def _held(connection: Connection, kinds: Mapping[str, str]) -> dict[str, CurrentTask]:
    """Names of these tasks in unfinished runs of the connection's team. A task that none of them
    names is a part of one, or needed by one.
    """
    found: dict[str, CurrentTask] = {}
    above = {key: {key} for key in kinds}  # what needs these, at first themselves -> which of them
    for depth in range(_DEEPEST):
        for row in _named(connection, above):
            evaluation = row.id if row.kind == _EVALUATION else None
            for key in above[row.task_key]:
                name = kinds[key] if depth else row.name
                found.setdefault(key, CurrentTask(name, evaluation))
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


def store_plugins(records: Records, installed: Iterable[InstalledPlugin]) -> None:
    """Store a worker's plug-ins in place of all others: all workers are to have the same."""
    with records.transaction() as connection:
        connection.execute(plugins.delete())
        for each in installed:
            row = {**each.asdict(), "told_at": time.time()}
            connection.execute(plugins.insert().values(row))


def read_plugins(connection: Connection) -> Mapping[str, InstalledPlugin]:
    """Read the installed plug-ins by name."""
    rows = connection.execute(sa.select(plugins).order_by(plugins.c.name)).all()
    return {row.name: InstalledPlugin(row.name, row.package, row.version) for row in rows}


LAST_BACKUP, LAST_JANITOR_ROUND = "backup", "janitor"


def note_moment(records: Records, name: str, at: float) -> None:
    with records.transaction() as connection:
        set_moment(connection, name, at)


def set_moment(connection: Connection, name: str, at: float) -> None:
    own = moment_rows.c.name == name
    if not connection.execute(moment_rows.update().where(own).values(at=at)).rowcount:
        connection.execute(moment_rows.insert().values(name=name, at=at))


def read_moments(connection: Connection) -> Mapping[str, float]:
    """Seconds since 1970, by name."""
    return {row.name: row.at for row in connection.execute(sa.select(moment_rows))}
