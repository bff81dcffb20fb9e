"""Runs follow their tasks: a new version and an event for each change, and a final snapshot."""

import json
import time
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.base import RunProblem
from prescore.models.runs import ENDED, EndEvent, Progress, RunStatus, TaskEvent
from service.contract import results
from service.contract.plan import tasks
from service.contract.results import ScoreSummary, TaskRow
from service.engine import cancellation, summaries, tenancy
from service.engine.records import Records, build_insert, in_batches
from service.engine.tables import (
    announcements,
    attempts,
    events,
    needs,
    past_attempts,
    run_tasks,
    runs,
    task_rows,
    untold,
    webhooks,
)

TOLD_AT_ONCE = 20  # runs in one transaction: all others wait for it, and the lease is 12 s
_OF_PARTS = (
    "key",
    "status",
    "done",
    "attempt",
    "started_at",
    "parameters",
    "summary",
    "summary_id",
)
_EVENTS = sa.select(events.c.version, events.c.kind, events.c.payload).order_by(events.c.version)


class RunListener(Protocol):
    """A listener to runs. It is called in the transaction that changes them."""

    def may_end(
        self, connection: Connection, request: str, rows: Sequence[MutableMapping[str, Any]]
    ) -> bool:
        """Tell whether a run with this request may end before its tasks do."""

    def enter_end(
        self, connection: Connection, identity: str, rows: Sequence[TaskRow]
    ) -> Collection[str]:
        """Enter a run that ends now; returns the full names of the metrics that it shows."""


_listeners: list[RunListener] = []


def add_listener(listener: RunListener) -> None:
    """Let a listener hear of runs from now on; each process that changes runs does so once."""
    if listener not in _listeners:
        _listeners.append(listener)


@tenancy.for_all_teams
def update_runs(connection: Connection, keys: Iterable[str]) -> None:
    """Add versions and events to the unfinished runs of these tasks, and end those that may end.

    If a task has more runs than `TOLD_AT_ONCE`, the others are noted for `update_noted_runs`.
    """
    changed = [*keys]
    changed += _wholes(connection, changed)
    query = (
        sa.select(run_tasks.c.run_id, run_tasks.c.name)
        .join(runs, runs.c.id == run_tasks.c.run_id)
        .where(runs.c.finished_at.is_(None))
        .order_by(run_tasks.c.position, run_tasks.c.run_id)  # the same runs are told each time
    )
    concerned = [
        row
        for batch in in_batches(changed)
        for row in connection.execute(query.where(run_tasks.c.task_key.in_(batch)))
    ]
    names: dict[str, set[str]] = {}
    for row in concerned:
        names.setdefault(row.run_id, set()).add(row.name)
    told = list(names)[:TOLD_AT_ONCE]
    later = [
        {"run_id": row.run_id, "name": row.name} for row in concerned if row.run_id not in told
    ]
    if later:
        connection.execute(build_insert(connection, untold).on_conflict_do_nothing(), later)
    for identity in told:
        _update_run(connection, identity, names[identity])


def update_noted_runs(records: Records, most: int | None = None) -> int:
    """Update the runs that were noted, some in each transaction; returns how many.

    `most`: how many transactions; None: until nothing is noted. Several processes may do this.
    """
    updated = batches = 0
    while most is None or batches < most:
        batch = _update_noted_batch(records)
        if not batch:
            break
        updated, batches = updated + batch, batches + 1
    return updated


def _update_noted_batch(records: Records) -> int:
    some = sa.select(untold.c.run_id).distinct().limit(TOLD_AT_ONCE)
    with records.reading() as connection:
        if connection.execute(some.limit(1)).first() is None:
            return 0
    with records.transaction() as connection:
        identities = connection.execute(some).scalars().all()
        these = untold.delete().where(untold.c.run_id.in_(identities))
        names: dict[str, set[str]] = {}
        for row in connection.execute(these.returning(untold.c.run_id, untold.c.name)).all():
            names.setdefault(row.run_id, set()).add(row.name)
        running = runs.c.id.in_(identities), runs.c.finished_at.is_(None)
        for identity in connection.execute(sa.select(runs.c.id).where(*running)).scalars().all():
            _update_run(connection, identity, names[identity])
        return len(identities)


def _update_run(connection: Connection, identity: str, names: Collection[str]) -> None:
    """Add events about these tasks to a run, derive its status, and end it if it may end."""
    rows = task_statuses(connection, identity)
    touched = [row for row in rows if row["name"] in names]
    summaries.fill_summaries(connection, [row for row in touched if row["status"] == "done"])
    for row in touched:
        add_event(connection, identity, "task", _task_event(row).model_dump_json())
        scored = results.parse_summary(row, ScoreSummary)
        if scored is not None:
            add_event(connection, identity, "scores", summaries.format_scores_event(row, scored))
    _settle(connection, identity, rows)
    if any(map(_has_outcome, touched)):
        _end_early(connection, identity, rows)


def _has_outcome(row: TaskRow) -> bool:
    """Tell whether a task, or a shard of it, has ended in a way that may decide its run."""
    has_summary = row["summary"] is not None or row["summary_id"] is not None
    return has_summary or row["status"] in ("done", "unavailable")


def _end_early(
    connection: Connection, identity: str, rows: Sequence[MutableMapping[str, Any]]
) -> None:
    """End an unfinished run if a listener says so, unless a task has failed or was canceled."""
    if any(row["status"] in ("failed", "canceled") for row in rows):
        return
    unfinished = runs.c.id == identity, runs.c.finished_at.is_(None)
    request = connection.execute(sa.select(runs.c.request).where(*unfinished)).scalar()
    if request is None:
        return
    if any(listener.may_end(connection, request, rows) for listener in _listeners):
        _end_unfinished(connection, identity, "succeeded", rows)
        cancellation.cancel_tasks(connection, identity)


def _wholes(connection: Connection, keys: Sequence[str]) -> list[str]:
    """The tasks of which these are shards: tasks of the same kind that need them."""
    part = task_rows.alias()
    query = (
        sa.select(needs.c.task_key)
        .join(part, part.c.key == needs.c.needs_key)
        .join(task_rows, task_rows.c.key == needs.c.task_key)
        .where(part.c.kind == task_rows.c.kind)
    )
    return [
        key
        for batch in in_batches(keys)
        for key in connection.execute(query.where(needs.c.needs_key.in_(batch))).scalars()
    ]


def _task_event(row: Mapping[str, Any]) -> TaskEvent:
    return TaskEvent(
        name=row["name"],
        status=row["status"],
        progress=Progress(done=row["done"], total=row["total"]),
        attempts=row["attempt"],
        error=RunProblem.model_validate_json(row["error"]) if row["error"] else None,
    )


@tenancy.for_all_teams
def settle_run(connection: Connection, identity: str) -> None:
    """Derive a run's status from its tasks, and end it if it may end. The status at the end never
    changes again.
    """
    rows = task_statuses(connection, identity)
    _settle(connection, identity, rows)
    _end_early(connection, identity, rows)


def _settle(
    connection: Connection, identity: str, rows: Sequence[MutableMapping[str, Any]]
) -> None:
    status = tasks.derive_run_status(row["status"] for row in rows)
    if status in ENDED:
        _end(connection, identity, status, rows)
    else:
        _change(connection, identity, status=status)


def end_run(connection: Connection, identity: str, status: RunStatus) -> None:
    """End a run before its tasks, which it then shows as canceled; other runs may need them."""
    _end_unfinished(connection, identity, status, task_statuses(connection, identity))


def _end_unfinished(
    connection: Connection,
    identity: str,
    status: RunStatus,
    rows: Sequence[MutableMapping[str, Any]],
) -> None:
    unfinished = [row for row in rows if row["status"] not in tasks.TERMINAL]
    for row in unfinished:
        row["status"] = "canceled"
    if unfinished:
        _end(connection, identity, status, rows)


def _end(
    connection: Connection,
    identity: str,
    status: RunStatus,
    rows: Sequence[MutableMapping[str, Any]],
) -> None:
    """End a run: listeners hear of it, tasks and events are packed, webhooks are to be told."""
    if not _listeners:
        raise RuntimeError("no listener to runs: call `listen_to_engine` when the process starts")
    summaries.fill_summaries(connection, rows)
    now = time.time()
    if not _change(connection, identity, status=status, finished_at=now):
        return
    note_ended_run(connection, identity, now)
    add_event(connection, identity, "end", EndEvent(status=status).model_dump_json())
    shown = frozenset(
        name for listener in _listeners for name in listener.enter_end(connection, identity, rows)
    )
    own = events.c.run_id == identity
    log = connection.execute(_EVENTS.where(own)).all()
    connection.execute(events.delete().where(own))
    packed = {
        "snapshot": summaries.pack_snapshot(rows, shown),
        "event_log": summaries.pack_json([list(event) for event in log]),
    }
    connection.execute(runs.update().where(runs.c.id == identity).values(**packed))


def _change(connection: Connection, identity: str, **values: Any) -> bool:
    """Change a run unless it has ended; returns whether it was changed."""
    changed = connection.execute(
        runs.update().where(runs.c.id == identity, runs.c.finished_at.is_(None)).values(**values)
    )
    return changed.rowcount == 1


def add_event(connection: Connection, identity: str, kind: str, payload: str) -> None:
    """Add an event, which makes a new version of the run; that number is the event's id."""
    add_version(connection, identity)
    version = sa.select(runs.c.version).where(runs.c.id == identity)
    connection.execute(
        events.insert().values(
            run_id=identity,
            version=version.scalar_subquery(),
            kind=kind,
            payload=payload,
        )
    )


def add_version(connection: Connection, identity: str) -> None:
    """Make a new version of a run, ended or not, by which those who poll see that it changed."""
    own = runs.update().where(runs.c.id == identity)
    connection.execute(own.values(version=runs.c.version + 1))


def read_events_after(
    connection: Connection, identity: str, after: int
) -> list[summaries.StoredEvent]:
    """A run's events after a version, in their order."""
    log = connection.execute(sa.select(runs.c.event_log).where(runs.c.id == identity)).scalar()
    if log is not None:
        found = [event for event in summaries.unpack_json(log) if event[0] > after]
        return summaries.expand_events(connection, found)
    later = _EVENTS.where(events.c.run_id == identity, events.c.version > after)
    return summaries.expand_events(connection, connection.execute(later).all())


def task_statuses(connection: Connection, identity: str) -> list[dict[str, Any]]:
    """A run's tasks as it shows them; a sharded task includes the state of its shards. Long
    summaries are not read.
    """
    return tasks_of(connection, [identity])[identity]


def tasks_of(connection: Connection, identities: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The tasks of several runs, by the run's id."""
    rows = connection.execute(
        sa.select(run_tasks.c.run_id, run_tasks.c.name, run_tasks.c.cached, task_rows)
        .join(task_rows, task_rows.c.key == run_tasks.c.task_key)
        .where(run_tasks.c.run_id.in_(identities))
        .order_by(run_tasks.c.run_id, run_tasks.c.position)
    ).all()
    found = [dict(row._mapping) for row in rows]  # noqa: SLF001
    sharded = [(row, json.loads(row["parts"])) for row in found if row["parts"] != "[]"]
    parts = _parts(connection, {key for _, keys in sharded for key in keys})
    for row, keys in sharded:
        _add_up(row, [parts[key] for key in keys])
    of: dict[str, list[dict[str, Any]]] = {identity: [] for identity in identities}
    for row in found:
        of[row.pop("run_id")].append(row)
    return of


def _parts(connection: Connection, keys: Iterable[str]) -> dict[str, Row[Any]]:
    query = sa.select(*(task_rows.c[name] for name in _OF_PARTS))
    return {
        row.key: row
        for batch in in_batches(keys)
        for row in connection.execute(query.where(task_rows.c.key.in_(batch)))
    }


def _add_up(row: dict[str, Any], parts: Sequence[Row[Any]]) -> None:
    """Add the shards' state to a sharded task, which runs from its first shard's start on.

    Its progress counts images. Until it is joined, its summary is the last finished shard's.
    """
    spans = [json.loads(part.parameters)["images"] for part in parts]
    images = [stop - start for start, stop in spans]
    row["total"] = sum(images)
    row["done"] = sum(
        count if part.status == "done" else min(part.done, count)
        for part, count in zip(parts, images, strict=True)
    )
    row["attempt"] = max(row["attempt"], *(part.attempt for part in parts))
    statuses = {part.status for part in parts}
    if row["status"] in ("waiting", "ready"):
        begun = statuses & {"running", "done"}
        row["status"] = "running" if begun else "ready" if "ready" in statuses else "waiting"
    done = [part for part in parts if part.status == "done"]
    if row["summary"] is None and row["summary_id"] is None and done:
        row["summary"], row["summary_id"] = done[-1].summary, done[-1].summary_id
    started = [part.started_at for part in parts if part.started_at is not None]
    if started:
        row["started_at"] = min(started)


_TRIMMED_AT_ONCE = 500  # rows in a transaction, during which all writers wait


def drop_attempts(connection: Connection, these: sa.ColumnElement[bool]) -> int:
    """Delete attempts; those that had ended still count. Returns how many."""
    outcomes = sa.select(attempts.c.outcome, sa.func.count().label("many"))
    ended = outcomes.where(these, attempts.c.outcome.is_not(None)).group_by(attempts.c.outcome)
    for row in connection.execute(ended).all():
        new = build_insert(connection, past_attempts).values(outcome=row.outcome, many=row.many)
        more = {"many": past_attempts.c.many + row.many}
        connection.execute(new.on_conflict_do_update(index_elements=["outcome"], set_=more))
    return connection.execute(attempts.delete().where(these)).rowcount


def trim_attempts(records: Records, before: float) -> int:
    """Delete the attempts that ended before that time, as many as one transaction may."""
    old = sa.select(attempts.c.id).where(attempts.c.ended_at < before).order_by(attempts.c.id)
    with records.reading() as connection:
        identities = connection.execute(old.limit(_TRIMMED_AT_ONCE)).scalars().all()
    if not identities:
        return 0
    with records.transaction() as connection:
        return drop_attempts(connection, attempts.c.id.in_(identities))


def trim_events(records: Records, before: float) -> int:
    """Forget the events of runs that ended before that time, as many as one transaction may."""
    kept = runs.c.event_log.is_not(None)
    old = sa.select(runs.c.id).where(runs.c.finished_at < before, kept).order_by(runs.c.finished_at)
    with records.reading() as connection:
        identities = connection.execute(old.limit(_TRIMMED_AT_ONCE)).scalars().all()
    if identities:
        with records.transaction() as connection:
            these = runs.update().where(runs.c.id.in_(identities))
            connection.execute(these.values(event_log=None))
    return len(identities)


def note_ended_run(connection: Connection, identity: str, at: float) -> None:
    """Note that a run has ended, in the transaction that ends it, if its team has webhooks."""
    team = runs.c.team
    own = webhooks.c.team == team, webhooks.c.disabled_because.is_(None)
    has_webhooks = sa.exists(webhooks.c.team).where(*own)  # workers may read no more of a webhook
    ended = sa.select(runs.c.id, team, sa.literal(at)).where(runs.c.id == identity, has_webhooks)
    connection.execute(announcements.insert().from_select(["run_id", "team", "at"], ended))


def list_ended_runs(connection: Connection, most: int) -> list[Row[Any]]:
    """The first ones: run, team, when it ended."""
    query = sa.select(announcements).order_by(announcements.c.at, announcements.c.run_id)
    return list(connection.execute(query.limit(most)).all())


def take_ended_run(connection: Connection, identity: str) -> bool:
    """Forget one, since it is told now; False if another process has told it."""
    gone = announcements.delete().where(announcements.c.run_id == identity)
    return connection.execute(gone).rowcount == 1
