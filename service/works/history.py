"""Runs follow their works: a new version and an event for each change, and a final snapshot."""

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Row

from service.contract import results
from service.contract.api.answers import RunProblem
from service.contract.api.runs import EndEvent, ProgressOut, WorkEvent
from service.contract.api.scores import ScoresEvent
from service.contract.plan import works
from service.contract.plan.works import RunStatus
from service.contract.results import EvaluationKept, Scored
from service.works import scores
from service.works.tables import events, needs, run_works, runs, score_rows, untold, work_rows

_SCORED = "evaluation"  # the kind of run whose scores are searched by metric
TOLD_AT_ONCE = 20  # runs in one transaction: all others wait for it, and the lease is 12 s


def update_runs(connection: Connection, keys: Iterable[str]) -> list[str]:
    """Add versions and events to the unfinished runs of these works; returns the runs' ids.

    If a work has more runs than `TOLD_AT_ONCE`, the others are noted: `telling` tells them.
    """
    changed = [*keys]
    changed += _wholes(connection, changed)
    concerned = connection.execute(
        sa.select(run_works.c.run_id, run_works.c.name)
        .join(runs, runs.c.id == run_works.c.run_id)
        .where(run_works.c.work_key.in_(changed), runs.c.finished_at.is_(None))
        .order_by(run_works.c.position)
    ).all()
    names: dict[str, set[str]] = {}
    for row in concerned:
        names.setdefault(row.run_id, set()).add(row.name)
    told = list(names)[:TOLD_AT_ONCE]
    later = [
        {"run_id": row.run_id, "name": row.name} for row in concerned if row.run_id not in told
    ]
    if later:
        dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
        connection.execute(dialect.insert(untold).on_conflict_do_nothing(), later)
    for identity in told:
        tell(connection, identity, names[identity])
    return told


def tell(connection: Connection, identity: str, names: Collection[str]) -> None:
    """Add events about these works to a run, and derive its status."""
    rows = work_statuses(connection, identity)
    for row in rows:
        if row["name"] in names:
            add_event(connection, identity, "work", _work_event(row))
            scored = results.of(row, Scored)
            if scored is not None:
                event = ScoresEvent(scores=dict(scored.scores), signature=scored.signature)
                add_event(connection, identity, "scores", event)
    _settle(connection, identity, rows)


def _wholes(connection: Connection, keys: Sequence[str]) -> list[str]:
    """The works of which these are shards: works of the same kind that need them."""
    part = work_rows.alias()
    query = (
        sa.select(needs.c.work_key)
        .join(part, part.c.key == needs.c.needs_key)
        .join(work_rows, work_rows.c.key == needs.c.work_key)
        .where(needs.c.needs_key.in_(keys), part.c.kind == work_rows.c.kind)
    )
    return list(connection.execute(query).scalars())


def _work_event(row: Mapping[str, Any]) -> WorkEvent:
    return WorkEvent(
        name=row["name"],
        status=row["status"],
        progress=ProgressOut(done=row["done"], total=row["total"]),
        attempts=row["attempt"],
        error=RunProblem.model_validate_json(row["error"]) if row["error"] else None,
    )


def settle(connection: Connection, identity: str) -> None:
    """Derive a run's status from its works; the status at the end never changes again."""
    _settle(connection, identity, work_statuses(connection, identity))


def _settle(connection: Connection, identity: str, rows: Sequence[Mapping[str, Any]]) -> None:
    status = works.derive(row["status"] for row in rows)
    if status in works.ENDED:
        _end(connection, identity, status, rows)
    else:
        _change(connection, identity, status=status)


def end_run(connection: Connection, identity: str, status: RunStatus) -> None:
    """End a run before its works, which it then shows as canceled; other runs may need them."""
    rows = work_statuses(connection, identity)
    unfinished = [row for row in rows if row["status"] not in works.TERMINAL]
    for row in unfinished:
        row["status"] = "canceled"
    if unfinished:
        _end(connection, identity, status, rows)


def _end(
    connection: Connection,
    identity: str,
    status: RunStatus,
    rows: Sequence[Mapping[str, Any]],
) -> None:
    snapshot = json.dumps([dict(row) for row in rows])
    if _change(connection, identity, status=status, finished_at=time.time(), snapshot=snapshot):
        _keep_scores(connection, identity, rows)
        add_event(connection, identity, "end", EndEvent(status=status))


def _keep_scores(connection: Connection, identity: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store the scores that an ended evaluation shows, to be searched by metric."""
    run = connection.execute(
        sa.select(runs.c.kind, runs.c.request).where(runs.c.id == identity)
    ).one()
    if run.kind != _SCORED:
        return
    kept = [
        {
            "run_id": identity,
            "metric": name,
            "value": score.value,
            **dict(zip(("low", "high"), score.interval or (None, None), strict=True)),
            "signature": score.signature,
        }
        for name, score in scores.shown(
            rows, EvaluationKept.model_validate_json(run.request)
        ).items()
    ]
    if kept:
        connection.execute(score_rows.insert(), kept)


def _change(connection: Connection, identity: str, **values: Any) -> bool:
    """Change a run unless it has ended; returns whether it was changed."""
    changed = connection.execute(
        runs.update().where(runs.c.id == identity, runs.c.finished_at.is_(None)).values(**values)
    )
    return changed.rowcount == 1


def add_event(connection: Connection, identity: str, kind: str, payload: BaseModel) -> None:
    """Add an event, which makes a new version of the run; that number is the event's id."""
    connection.execute(
        runs.update().where(runs.c.id == identity).values(version=runs.c.version + 1)
    )
    version = sa.select(runs.c.version).where(runs.c.id == identity)
    connection.execute(
        events.insert().values(
            run_id=identity,
            version=version.scalar_subquery(),
            kind=kind,
            payload=payload.model_dump_json(),
        )
    )


def work_statuses(connection: Connection, identity: str) -> list[dict[str, Any]]:
    """A run's works as it shows them; a sharded work includes the state of its shards."""
    rows = connection.execute(
        sa.select(run_works.c.name, work_rows)
        .join(work_rows, work_rows.c.key == run_works.c.work_key)
        .where(run_works.c.run_id == identity)
        .order_by(run_works.c.position)
    ).all()
    found = [dict(row._mapping) for row in rows]  # noqa: SLF001
    sharded = {row["key"]: json.loads(row["parts"]) for row in found if row["parts"] != "[]"}
    if sharded:
        parts = _parts(connection, [key for keys in sharded.values() for key in keys])
        for row in found:
            if row["key"] in sharded:
                _add_up(row, [parts[key] for key in sharded[row["key"]]])
    return found


def _parts(connection: Connection, keys: Iterable[str]) -> dict[str, Row[Any]]:
    columns = ("key", "status", "done", "attempt", "started_at", "parameters", "summary")
    query = sa.select(*(work_rows.c[name] for name in columns))
    rows = connection.execute(query.where(work_rows.c.key.in_(list(keys)))).all()
    return {row.key: row for row in rows}


def _add_up(row: dict[str, Any], parts: Sequence[Row[Any]]) -> None:
    """Add the shards' state to a sharded work, which runs from its first shard's start on.

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
    summaries = [part.summary for part in parts if part.status == "done"]
    row["summary"] = row["summary"] or (summaries or [None])[-1]
    started = [part.started_at for part in parts if part.started_at is not None]
    if started:
        row["started_at"] = min(started)
