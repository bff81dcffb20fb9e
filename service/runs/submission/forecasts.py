"""The history of a forecast: the finished evaluations of a split, found once at submission.

The history is stored as a blob, which the work `forecast` reads: an equal history and equal columns
make the same work. It never contains the evaluation's own checkpoint.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.api.requests import EvaluationIn
from service.contract.metrics import catalogue
from service.contract.metrics.forecasts import PREDICTORS, too_few
from service.contract.plan import planning, works
from service.contract.plan.planning import Plan
from service.contract.results import (
    EvaluationKept,
    ForecastHistory,
    PastEvaluation,
    Unforeseen,
)
from service.runs import base, evaluations
from service.stored.datasets import Pinned
from service.works.parts import Parts
from service.works.tables import boards, checkpoints, labels, runs, score_rows

_MOST = 200  # the latest evaluations; older ones say less, and each submission reads them all
_OF_CHECKPOINTS = "forecasts are learned from checkpoints; these columns were brought"
_LABELS = ("run", "branch")  # the first of these labels that exists tells training runs apart


def add(
    parts: Parts, request: EvaluationIn, pinned: Pinned, plan: Plan
) -> tuple[Plan, Unforeseen | None]:
    """The plan with a forecast; or the unchanged plan and, if there is one, a reason."""
    metrics = catalogue.expand(request.postgen)
    if "pregen" not in plan.named or not metrics:
        return plan, None
    if request.checkpoint is None:
        return plan, Unforeseen(none_because=_OF_CHECKPOINTS)
    with parts.records.reading() as connection:
        past = _past(connection, request, pinned, metrics)
    reasons = [_too_few(past, metric) for metric in metrics]
    if None not in reasons:
        return plan, Unforeseen(none_because=reasons[0] or "")
    history = ForecastHistory(metrics=metrics, evaluations=past)
    digest = parts.blobs.put(works.canonical(history.model_dump()).encode())
    return planning.with_forecast(plan, digest), None


def _too_few(past: Sequence[PastEvaluation], metric: str) -> str | None:
    runs = [one.run for one in past if one.scores.get(metric) is not None]
    return too_few(len(runs), len(set(runs)))


def _past(
    connection: Connection, request: EvaluationIn, pinned: Pinned, metrics: Sequence[str]
) -> list[PastEvaluation]:
    """The history: one evaluation of every checkpoint, the latest first."""
    found = {row.id: row for row in _ended(connection, request, pinned)}
    scores = _scores(connection, found, [*PREDICTORS, *metrics])
    marked = _labels(connection, found)
    return [
        PastEvaluation(
            run=_run(json.loads(row.description), marked.get(identity, {})),
            architecture=json.loads(row.description)["architecture"],
            scores=scores[identity],
        )
        for identity, row in found.items()
        if scores.get(identity, {}).keys() >= set(PREDICTORS)
    ]


def _ended(connection: Connection, request: EvaluationIn, pinned: Pinned) -> Iterable[Any]:
    asked = EvaluationKept.model_validate(request.model_dump())
    query = (
        sa.select(
            runs.c.id,
            runs.c.checkpoint,
            runs.c.request,
            checkpoints.c.description,
        )
        .join(checkpoints, checkpoints.c.digest == runs.c.checkpoint)
        .where(
            runs.c.kind == evaluations.KIND.name,
            base.on_split(pinned),
            runs.c.status == "succeeded",
            runs.c.checkpoint != request.checkpoint,
        )
        .order_by(runs.c.created_at.desc(), runs.c.id)
        .limit(_MOST)
    )
    latest: dict[str, Any] = {}
    for row in connection.execute(query).all():
        if asked.is_computed_as(EvaluationKept.model_validate_json(row.request)):
            latest.setdefault(row.checkpoint, row)
    return latest.values()


def _scores(
    connection: Connection, identities: Iterable[str], metrics: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Scores by evaluation and metric, with the signature of the metric's latest score."""
    order = {identity: place for place, identity in enumerate(identities)}
    query = (
        sa.select(score_rows.c.run_id, score_rows.c.metric, score_rows.c.value, boards.c.signature)
        .join(boards, boards.c.id == score_rows.c.board_id)
        .where(score_rows.c.run_id.in_(list(order)), score_rows.c.metric.in_(metrics))
    )
    signatures: dict[str, str] = {}
    found: dict[str, dict[str, float | None]] = {}
    for row in sorted(connection.execute(query).all(), key=lambda row: order[row.run_id]):
        if row.signature == signatures.setdefault(row.metric, row.signature):
            found.setdefault(row.run_id, {})[row.metric] = row.value
    return found


def _labels(connection: Connection, identities: Iterable[str]) -> dict[str, dict[str, str]]:
    query = sa.select(labels).where(
        labels.c.run_id.in_(list(identities)), labels.c.name.in_(_LABELS)
    )
    found: dict[str, dict[str, str]] = {}
    for row in connection.execute(query).all():
        found.setdefault(row.run_id, {})[row.name] = row.value
    return found


def _run(description: Mapping[str, Any], marked: Mapping[str, str]) -> str:
    """The training run of a checkpoint: its label, else its architecture, cell and size."""
    for name in _LABELS:
        if name in marked:
            return f"{name}={marked[name]}"
    config = description["config"]
    return f"{description['architecture']} {config['cell']} {config['size']}"
