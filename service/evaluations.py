"""Evaluations: a named set of works, looked at and canceled; never HTTP."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract import catalogue, endings
from service.contract.errors import NotFound
from service.contract.history import work_statuses
from service.contract.records import Records
from service.contract.schemas import (
    DatasetPinned,
    EvaluationOut,
    ProgressOut,
    RunProblem,
    ScoreOut,
    WarningOut,
    WorkOut,
)
from service.contract.tables import evaluation_works, evaluations, labels, work_rows
from service.contract.texts import EVALUATION_ID
from service.contract.works import ENDED
from service.times import rfc3339

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
        raise NotFound(f"no evaluation {identity!r:.60}")
    return found.version, found.status in ENDED


def get(records: Records, identity: str) -> tuple[EvaluationOut, int]:
    """The evaluation and its version."""
    with records.reading() as connection:
        row = _row(connection, identity)
        rows = _works(connection, row)
        cached = dict(
            connection.execute(
                sa.select(evaluation_works.c.name, evaluation_works.c.cached).where(
                    evaluation_works.c.evaluation_id == identity
                )
            ).all()
        )
        found_labels = dict(
            connection.execute(
                sa.select(labels.c.name, labels.c.value).where(labels.c.evaluation_id == identity)
            ).all()
        )
    request = json.loads(row.request)
    return EvaluationOut(
        id=row.id,
        status=row.status,
        dataset=DatasetPinned(**json.loads(row.dataset)),
        checkpoint=row.checkpoint,
        works=[_work_out(at, cached=cached[at["name"]]) for at in rows],
        scores=_scores(rows, request),
        warnings=[WarningOut(**warning) for warning in json.loads(row.warnings)],
        gates=[],
        verdict=None,
        forecast=None,
        estimate=None,
        health=None,
        error=_error(rows) if row.status == "failed" else None,
        labels=found_labels,
        created_at=rfc3339(row.created_at),
        finished_at=rfc3339(row.finished_at) if row.finished_at else None,
    ), row.version


def _check(identity: str) -> None:
    """What cannot be an id never reaches the database, which may take offence (NUL)."""
    if not re.fullmatch(EVALUATION_ID, identity):
        raise NotFound(f"no evaluation {identity!r:.60}")


def _row(connection: Connection, identity: str) -> Row[Any]:
    _check(identity)
    row = connection.execute(sa.select(evaluations).where(evaluations.c.id == identity)).first()
    if row is None:
        raise NotFound(f"no evaluation {identity!r:.60}")
    return row


def _works(connection: Connection, row: Row[Any]) -> list[dict[str, Any]]:
    """As they are; of an evaluation that has ended, as they were then."""
    if row.snapshot is not None:
        return list(json.loads(row.snapshot))
    return work_statuses(connection, row.id)


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


def _error(rows: Sequence[Mapping[str, Any]]) -> RunProblem | None:
    """The first failure that is not another one's consequence."""
    found = [
        RunProblem.model_validate_json(row["error"])
        for row in rows
        if row["status"] == "failed" and row["error"]
    ]
    return next((error for error in found if error.code != "needs_failed"), None) or (
        found[0] if found else None
    )


def _summaries(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Scores by name, as the works summed them up."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["status"] == "done" and row["summary"]:
            summary = json.loads(row["summary"])
            for name, value in summary.get("scores", {}).items():
                found.setdefault(name, {"value": value, "signature": summary["signature"]})
    return found


def _scores(rows: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> dict[str, ScoreOut]:
    found = _summaries(rows)
    wanted: list[str] = []
    if request["checkpoint"] is not None:
        pregen = request["pregen"]
        wanted += catalogue.HEADLINE if pregen in (None, "all") else pregen
    wanted += catalogue.expand(request["postgen"])
    return {
        name: ScoreOut.of(name, **found[full])
        for name in wanted
        for full in [catalogue.metric(name).name]
        if full in found
    }


def pregen(records: Records, identity: str) -> dict[str, ScoreOut]:
    """Every pre-gen score that is there by now."""
    with records.reading() as connection:
        rows = _works(connection, _row(connection, identity))
    return {
        name: ScoreOut.of(name, **found)
        for name, found in _summaries(rows).items()
        if catalogue.metric(name).family == "pregen"
    }


def cancel(records: Records, identity: str) -> None:
    """Ends an evaluation's works, those apart that another live evaluation waits for."""
    with records.transaction() as connection:
        if _row(connection, identity).finished_at is None:
            endings.cancel(connection, identity)


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


def captions_of(records: Records, identity: str) -> str | None:
    """The digest of an evaluation's captions: those that were sent, or those decoded."""
    with records.reading() as connection:
        inputs = connection.execute(
            sa.select(work_rows.c.inputs)
            .join(evaluation_works, evaluation_works.c.work_key == work_rows.c.key)
            .where(evaluation_works.c.evaluation_id == identity)
        ).scalars()
        found = [json.loads(text).get("captions") for text in inputs]
    sent = next((at for at in found if at is not None and not at.startswith("work:")), None)
    return sent or result_of(records, identity, "captions")
