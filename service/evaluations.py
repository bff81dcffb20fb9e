"""Evaluations: what their works have brought by now; never HTTP."""

import json

import sqlalchemy as sa

from service import runs
from service.contract import catalogue, scores
from service.contract.records import Records
from service.contract.schemas import DatasetPinned, EvaluationOut, ScoreOut, WarningOut
from service.contract.tables import evaluation_works, labels, work_rows
from service.times import rfc3339


def get(records: Records, identity: str) -> tuple[EvaluationOut, int]:
    """The evaluation and its version."""
    with records.reading() as connection:
        row, rows = runs.look(connection, identity)
        works = runs.works_out(connection, rows, identity)
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
        works=works,
        scores=scores.shown(rows, request),
        warnings=[WarningOut(**warning) for warning in json.loads(row.warnings)],
        gates=[],
        verdict=None,
        forecast=None,
        estimate=None,
        health=request.get("health"),
        error=runs.error_of(rows) if row.status == "failed" else None,
        labels=found_labels,
        created_at=rfc3339(row.created_at),
        finished_at=rfc3339(row.finished_at) if row.finished_at else None,
    ), row.version


def pregen(records: Records, identity: str) -> dict[str, ScoreOut]:
    """Every pre-gen score that is there by now."""
    with records.reading() as connection:
        _, rows = runs.look(connection, identity)
    return {
        name: score
        for name, score in scores.brought(rows).items()
        if catalogue.metric(name).family == "pregen"
    }


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
    return sent or runs.result_of(records, identity, "captions")
