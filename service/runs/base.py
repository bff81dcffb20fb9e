"""Runs: named sets of works, looked at and canceled: evaluations, probes, trainings.

What all runs have in common is here; never HTTP.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract.api.problems import RunProblem
from service.contract.api.runs import DatasetPinned, ProgressOut, WarningOut, WorkOut
from service.contract.api.texts import COMPARISON_ID, EVALUATION_ID, LEARNED_ID, PROBES_ID
from service.contract.api.times import rfc3339
from service.contract.errors import NotFound
from service.contract.plan.planning import Plan
from service.contract.plan.works import ENDED
from service.stored.datasets import Pinned
from service.works import early, endings, intake
from service.works.history import settle, work_statuses
from service.works.records import Records
from service.works.tables import evaluation_works, evaluations, labels, work_rows

_ID = f"{EVALUATION_ID}|{PROBES_ID}|{LEARNED_ID}|{COMPARISON_ID}"
_CALLED = {"pb_": "probes", "ln_": "training", "cp_": "comparison"}
_STATE = sa.select(evaluations.c.version, evaluations.c.status).where(  # built once: polls ask it
    evaluations.c.id == sa.bindparam("identity")
)


def version(records: Records, identity: str) -> int:
    return state(records, identity)[0]


def state(records: Records, identity: str) -> tuple[int, bool]:
    """Its version, which is the number of its last event; whether it has ended."""
    _check(identity)
    with records.reading() as connection:
        found = connection.execute(_STATE, {"identity": identity}).first()
    if found is None:
        raise _missing(identity)
    return found.version, found.status in ENDED


@dataclass(frozen=True)
class Run:
    """One that is to begin; `request` is what is kept of it."""

    id: str
    request: Mapping[str, Any]
    dataset: Pinned
    plan: Plan
    warnings: Sequence[Mapping[str, Any]]
    deadline: float  # seconds from now
    checkpoint: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def insert(connection: Connection, records: Records, run: Run) -> None:
    now = time.time()
    deadline = now + run.deadline
    cached = intake.add_works(records, connection, run.plan.everything(), deadline)
    connection.execute(
        evaluations.insert().values(
            id=run.id,
            request=json.dumps(run.request),
            dataset=run.dataset.out.model_dump_json(),
            dataset_name=run.dataset.name,
            checkpoint=run.checkpoint,
            status="queued",
            version=1,
            warnings=json.dumps(list(run.warnings)),
            deadline=deadline,
            created_at=now,
        )
    )
    for position, (name, work) in enumerate(run.plan.named.items()):
        connection.execute(
            evaluation_works.insert().values(
                evaluation_id=run.id,
                position=position,
                name=name,
                work_key=work.key,
                cached=cached[work.key],
            )
        )
    for name, value in run.labels.items():
        connection.execute(labels.insert().values(evaluation_id=run.id, name=name, value=value))
    settle(connection, run.id)
    early.end_if_decided(connection, run.id)


def look(connection: Connection, identity: str) -> tuple[Row[Any], list[dict[str, Any]]]:
    """A run and its works: as they are; of one that has ended, as they were then."""
    row = _row(connection, identity)
    if row.snapshot is not None:
        return row, list(json.loads(row.snapshot))
    return row, work_statuses(connection, row.id)


def answer(
    connection: Connection, row: Row[Any], rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What is said of every run, by the names of the answer's fields."""
    return {
        "id": row.id,
        "status": row.status,
        "dataset": DatasetPinned(**json.loads(row.dataset)),
        "works": _works_out(connection, rows, row.id),
        "warnings": [WarningOut(**warning) for warning in json.loads(row.warnings)],
        "error": _error_of(rows) if row.status == "failed" else None,
        "created_at": rfc3339(row.created_at),
        "finished_at": rfc3339(row.finished_at) if row.finished_at else None,
    }


def _works_out(connection: Connection, rows: Sequence[Mapping[str, Any]], of: str) -> list[WorkOut]:
    cached = dict(
        connection.execute(
            sa.select(evaluation_works.c.name, evaluation_works.c.cached).where(
                evaluation_works.c.evaluation_id == of
            )
        ).all()
    )
    return [_work_out(row, cached=cached[row["name"]]) for row in rows]


def _work_out(row: Mapping[str, Any], *, cached: bool) -> WorkOut:
    ended = row["finished_at"] or time.time()
    seconds = round(ended - row["started_at"], 3) if row["started_at"] else None
    return WorkOut(
        name=row["name"],
        kind=row["kind"],
        status=row["status"],
        progress=ProgressOut(done=row["done"], total=row["total"]),
        attempts=row["attempt"],
        seconds=seconds,
        cached=cached,
        error=RunProblem.model_validate_json(row["error"]) if row["error"] else None,
    )


def _error_of(rows: Sequence[Mapping[str, Any]]) -> RunProblem | None:
    """The first failure that is not another one's consequence."""
    found = [
        RunProblem.model_validate_json(row["error"])
        for row in rows
        if row["status"] == "failed" and row["error"]
    ]
    return next((error for error in found if error.code != "needs_failed"), None) or (
        found[0] if found else None
    )


def cancel(records: Records, identity: str) -> None:
    """Ends a run's works, those apart that another live evaluation waits for."""
    with records.transaction() as connection:
        if _row(connection, identity).finished_at is None:
            endings.cancel(connection, identity)


def is_done(records: Records, key: str) -> bool:
    """Whether a work need not be computed any more."""
    with records.reading() as connection:
        query = sa.select(work_rows.c.status).where(work_rows.c.key == key)
        return connection.execute(query).scalar() == "done"


def result_of(records: Records, identity: str, name: str) -> str | None:
    """The digest of a work's result, once it is done."""
    with records.reading() as connection:
        return connection.execute(
            sa.select(work_rows.c.result)
            .join(evaluation_works, evaluation_works.c.work_key == work_rows.c.key)
            .where(
                evaluation_works.c.evaluation_id == identity,
                evaluation_works.c.name == name,
                work_rows.c.status == "done",
            )
        ).scalar()


def _missing(identity: str) -> NotFound:
    return NotFound(f"no {_CALLED.get(identity[:3], 'evaluation')} {identity!r:.60}")


def _check(identity: str) -> None:
    """What cannot be an id never reaches the database, which may take offence (NUL)."""
    if not re.fullmatch(_ID, identity):
        raise _missing(identity)


def _row(connection: Connection, identity: str) -> Row[Any]:
    _check(identity)
    row = connection.execute(sa.select(evaluations).where(evaluations.c.id == identity)).first()
    if row is None:
        raise _missing(identity)
    return row
