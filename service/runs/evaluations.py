"""Evaluations: what their works have brought by now; never HTTP."""

import json

import sqlalchemy as sa

from service.contract.api.evaluations import EvaluationOut
from service.contract.api.scores import ScoreOut
from service.contract.errors import InvalidRequest
from service.contract.metrics import catalogue
from service.runs import base, forecasts
from service.stored.datasets import Pinned
from service.works import scores, verdicts
from service.works.records import Records
from service.works.tables import evaluation_works, labels, work_rows


def get(records: Records, identity: str) -> tuple[EvaluationOut, int]:
    """The evaluation and its version."""
    with records.reading() as connection:
        row, rows = base.look(connection, identity)
        common = base.answer(connection, row, rows)
        found_labels = dict(
            connection.execute(
                sa.select(labels.c.name, labels.c.value).where(labels.c.evaluation_id == identity)
            ).all()
        )
    request = json.loads(row.request)
    gates, verdict = verdicts.of(rows, request)
    return EvaluationOut(
        **common,
        checkpoint=row.checkpoint,
        scores=scores.shown(rows, request),
        gates=gates,
        verdict=verdict,
        forecast=forecasts.shown(rows, request),
        estimate=scores.estimated(rows) or None,
        health=request.get("health"),
        labels=found_labels,
    ), row.version


def brought(records: Records, identity: str) -> dict[str, ScoreOut]:
    """Every score that is there by now, asked for or not."""
    with records.reading() as connection:
        _, rows = base.look(connection, identity)
    return scores.brought(rows)


def pregen(records: Records, identity: str) -> dict[str, ScoreOut]:
    return {
        name: score
        for name, score in brought(records, identity).items()
        if catalogue.metric(name).family == "pregen"
    }


def captions_on(records: Records, identity: str, pinned: Pinned, field: str) -> str:
    """The same, where they are of that split; `field` of a request names the evaluation."""
    evaluation, _ = get(records, identity)
    found = captions_of(records, identity)
    if (evaluation.dataset.digest, evaluation.dataset.split) != (pinned.digest, pinned.split):
        raise InvalidRequest(
            f"the evaluation is on {evaluation.dataset.name}/{evaluation.dataset.split}, "
            f"not on {pinned}",
            [(field, "expected one on the same split of the same version")],
        )
    if found is None:
        raise InvalidRequest(
            f"evaluation {identity} has no captions yet",
            [(field, "expected one whose captions are there")],
        )
    return found


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
    return sent or base.result_of(records, identity, "captions")
