"""Evaluations: their answers, scores and captions."""

import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from prescore.models.evaluations import Evaluation, Forecast, NoForecast
from prescore.models.identifiers import EVALUATION
from prescore.models.metrics import Score
from prescore.models.runs import Oddity
from service.contract import results
from service.contract.errors import InvalidRequest
from service.contract.formats import outputs
from service.contract.gates import gates
from service.contract.metrics import catalogue, tokenizers
from service.contract.metrics.families import FAMILIES
from service.contract.plan import tasks
from service.contract.results import (
    DecodingSummary,
    ForecastSummary,
    PicturesSummary,
    ScoreSummary,
    StoredEvaluation,
    TaskRow,
)
from service.contract.wording import count_noun
from service.engine.service_parts import ServiceParts
from service.engine.tables import run_tasks, task_rows
from service.runs import run_store, training_falls, verdicts
from service.runs.run_store import RunKind, RunView
from service.stored import datasets
from service.stored.datasets import PinnedSplit

_EARLY = ("prefix", "columns", "pregen", *catalogue.TOKEN_METRICS, "forecast")


def get_evaluation(parts: ServiceParts, identity: str) -> Evaluation:
    found, _ = KIND.look(parts, identity)
    return found


def read_scores(parts: ServiceParts, identity: str) -> dict[str, Score]:
    """All scores that are computed so far, requested or not."""
    with parts.records.reading() as connection:
        looked = run_store.load_all_scores(
            connection, run_store.load_run(connection, identity, KIND)
        )
    return verdicts.read_scores(looked.tasks)


def read_pregen_scores(parts: ServiceParts, identity: str) -> dict[str, Score]:
    return {
        name: score
        for name, score in read_scores(parts, identity).items()
        if catalogue.find_metric(name).family == "pregen"
    }


def find_captions_on(parts: ServiceParts, identity: str, pinned: PinnedSplit, field: str) -> str:
    """The digest of an evaluation's captions; InvalidRequest if they are of another split.

    `field` is the pointer of the request's field that names the evaluation.
    """
    evaluation = get_evaluation(parts, identity)
    theirs = find_split(parts, evaluation)
    found = find_captions(parts, identity)
    if not theirs.has_references_of(pinned):
        raise InvalidRequest(
            f"the evaluation is on {theirs}, not on {pinned}, which has other captions",
            [(field, "expected one on the same split of the same captions")],
        )
    if found is None:
        raise InvalidRequest(
            run_store.explain_missing(evaluation, "captions", task="captions"),
            [(field, "expected one that has captions")],
        )
    return found


def find_split(parts: ServiceParts, evaluation: Evaluation) -> PinnedSplit:
    """The split that an evaluation is on."""
    return datasets.pin_split(parts.records, str(evaluation.dataset))


def find_captions(parts: ServiceParts, identity: str) -> str | None:
    """The digest of an evaluation's captions, submitted or decoded; None if there are none yet."""
    with parts.records.reading() as connection:
        inputs = connection.execute(
            sa.select(task_rows.c.inputs)
            .join(run_tasks, run_tasks.c.task_key == task_rows.c.key)
            .where(run_tasks.c.run_id == identity)
        ).scalars()
        found = [json.loads(text).get("captions") for text in inputs]
    sent = next((at for at in found if at is not None and not at.startswith("work:")), None)
    return sent or run_store.find_result(parts.records, identity, "captions")


def _answer(parts: ServiceParts, looked: RunView) -> Evaluation:  # noqa: ARG001  as of all kinds
    row, rows, request = looked.row, looked.tasks, looked.request(StoredEvaluation)
    judged, verdict = verdicts.decide_gates(rows, request)
    shown = verdicts.select_shown_scores(rows, request)
    decoded = verdicts.read_decoded(rows)
    odd = (
        *_odd_captions(decoded, request),
        *_undecoded(rows),
        *_flat(rows, shown),
        *_unavailable(rows, request),
    )
    found = [*looked.common["warnings"], *odd]
    return Evaluation(
        **{**looked.common, "warnings": found},
        collapsed=verdicts.find_repeated_caption(decoded, request),
        checkpoint=row.checkpoint,
        columns=request.columns,
        prompt=request.prompt or request.own_prompt,
        scores=shown,
        gates=judged,
        verdict=verdict,
        forecast=show_forecast(rows, request),
        estimate=verdicts.read_estimates(rows) or None,
        health=request.health,
        falls=training_falls.read_falls(row.falls),
        labels=dict(looked.labels),
    )


def narrow_evaluation(evaluation: Evaluation, metrics: Container[str]) -> Evaluation:
    """The evaluation with the scores, forecasts, estimates and health of these metrics alone."""
    forecast = evaluation.forecast
    only: Any  # as the answer has them: forecasts, or the reason why there are none
    if isinstance(forecast, NoForecast):
        only = forecast.model_copy(update={"metrics": _narrow(forecast.metrics, metrics)})
    else:
        only = _narrow(forecast, metrics)
    others = ("scores", "estimate", "health")
    narrowed = {name: _narrow(getattr(evaluation, name), metrics) for name in others}
    return evaluation.model_copy(update={**narrowed, "forecast": only})


def _narrow(values: Mapping[str, Any] | None, metrics: Container[str]) -> dict[str, Any] | None:
    if values is None:
        return None
    return {name: value for name, value in values.items() if name in metrics}


def _odd_captions(decoded: Sequence[DecodingSummary], request: StoredEvaluation) -> list[Oddity]:
    """Warnings about captions that were decoded here."""
    found = []
    for one in decoded:
        found.append(outputs.warn_of_few_captions(one.decoded, one.distinct))
        if tokenizers.needs_blanks(request.tokenizer):
            side = "caption", one.unbroken, one.decoded
            found.append(outputs.warn_of_no_words(request.tokenizer, side))
    return [Oddity(**warning) for warning in found if warning]


def _undecoded(rows: Sequence[TaskRow]) -> list[Oddity]:
    """The first images whose pictures could not be decoded, and how many there are."""
    seen = (
        results.parse_summary(row, PicturesSummary) for row in rows if row["name"] == "features"
    )
    found: list[Oddity] = []
    for one in seen:
        if one is not None and one.undecoded:
            of = f"{one.undecoded:,} of {count_noun(one.tried, 'picture')} cannot be decoded"
            found.append(Oddity(code="undecoded", image=None, detail=of))
            found += [
                Oddity(code="undecoded", image=each.image, detail=each.reason)
                for each in one.unseen
            ]
    return found


def _flat(rows: Sequence[TaskRow], shown: Container[str]) -> list[Oddity]:
    """Each metric of those shown that says the same of all captions."""
    scored = (results.parse_summary(row, ScoreSummary) for row in rows if row["kind"] in FAMILIES)
    flat = {name: many for one in scored if one for name, many in one.flat.items()}
    return [
        Oddity(**outputs.warn_of_flat_scores(name, flat[name])) for name in flat if name in shown
    ]


def _unavailable(rows: Sequence[TaskRow], request: StoredEvaluation) -> list[Oddity]:
    """Each metric of captions that was asked for and cannot be computed, with the reason."""
    reasons = {
        row["name"]: json.loads(row["error"])["detail"]
        for row in rows
        if row["status"] == "unavailable" and row["error"]
    }
    asked = (
        catalogue.expand_groups([*request.postgen, *gates.list_gate_metrics(request.gates)])
        if reasons
        else []
    )
    return [
        Oddity(code="unavailable", image=None, detail=f"{name}: {reason}")
        for name in asked
        if catalogue.find_metric(name).family == "postgen"
        and (reason := reasons.get(catalogue.find_metric_task(name)))
    ]


def _is_early_enough(evaluation: Evaluation) -> bool:
    """Tell whether the pre-gen tasks have ended, or the whole evaluation where there are none."""
    early = [task for task in evaluation.tasks if task.name in _EARLY]
    if not early:
        return run_store.is_over(evaluation)
    return all(task.status in tasks.TERMINAL for task in early)


def show_forecast(
    rows: Sequence[TaskRow], request: StoredEvaluation
) -> dict[str, Forecast] | NoForecast | None:
    """The forecasts; None until they are computed, and where none were requested."""
    if request.forecast is not None:
        return NoForecast(none_because=request.forecast.none_because, metrics={})
    found = next(filter(None, (results.parse_summary(row, ForecastSummary) for row in rows)), None)
    if found is None:
        return None
    metrics = found.forecast
    reasons = {name: one.none_because for name, one in metrics.items() if one.none_because}
    if len(reasons) < len(metrics):
        return metrics
    return NoForecast(none_because=_told_once(reasons), metrics=metrics)


def _told_once(reasons: Mapping[str, str]) -> str:
    """Each reason with the metrics that it is for; alone, where it is for all."""
    metrics: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        metrics.setdefault(reason, []).append(name)
    if len(metrics) == 1:
        return next(iter(metrics))
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in metrics.items())


KIND = RunKind(
    name="evaluation",
    prefix=EVALUATION,
    noun="evaluation",
    place="/v1/evaluations",
    out=Evaluation,
    answer=_answer,
    enough=_is_early_enough,
    narrow=narrow_evaluation,
)
