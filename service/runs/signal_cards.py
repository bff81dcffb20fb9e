"""The card of a split: signal, noise and early decisions of each metric, from the record alone."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.signals import SIGNAL_COLUMNS, MetricSignal, SignalCard
from service.contract import results
from service.contract.metrics import catalogue
from service.contract.metrics.draws import ScoreDraws
from service.contract.results import ScoreSummary, TaskRow
from service.engine import summaries
from service.engine.service_parts import ServiceParts
from service.engine.tables import run_tasks, task_rows
from service.runs import leaderboard, signal_noise, training_scores
from service.runs.signal_noise import FinalOrder, StepScore
from service.runs.training_labels import RUN, STEP
from service.runs.training_scores import LabelledCheckpoint, MetricCurves, MetricScores
from service.stored import datasets
from service.stored.datasets import PinnedSplit

_MOST = 500  # the latest labelled evaluations, which take 3 s
_NO_STEP = "no label step that is a number from 0"
_NO_SCORES = "no scores of the whole split"
_PREGEN = "pregen"  # the kind of task whose summary has the scores that evaluations do not show
_HEADLINE = frozenset(catalogue.find_metric(name).name for name in catalogue.HEADLINE)


@dataclass(frozen=True)
class SignalQuery:
    """A request; `limit`: pre-gen metrics to show besides the headline ones."""

    dataset: str
    split: str | None
    target: str
    last: int = 5
    average: int = 1
    limit: int = 20


def build_signal_card(parts: ServiceParts, asked: SignalQuery) -> SignalCard:
    """The card; InvalidRequest if the target is neither better high nor low."""
    leaderboard.check_direction(asked.target, "target")
    pinned = datasets.pin_usual_split(parts.records, asked.dataset, asked.split)
    with parts.records.reading() as connection:
        labelled, without_step = training_scores.find_checkpoints(connection, pinned, _MOST)
        scores = training_scores.read_shown_scores(connection, pinned, [one.id for one in labelled])
        whole = {identity for found in scores.values() for identity in found}
        checkpoints = [one for one in labelled if one.id in whole]
        _add_pregen(connection, whole, scores)
        trainings = training_scores.find_trainings(checkpoints)
        metrics = {
            name: training_scores.build_curves(scores[name], checkpoints, trainings)
            for name in catalogue.sort_metric_names(scores)
        }
        known = training_scores.read_final_draws(connection, metrics)
    target = catalogue.find_metric(asked.target)
    order = training_scores.order_finals(metrics.get(target.name), known, target, asked.average)
    measured = [
        signal
        for name, found in metrics.items()
        if (signal := _measure_metric(name, found, order, known, asked)) is not None
    ]
    steps = Counter(run for run, _ in {(one.run, one.step) for one in checkpoints})
    left_out = {_NO_STEP: without_step, _NO_SCORES: len(labelled) - len(checkpoints)}
    return SignalCard(
        dataset=pinned.out,
        target=asked.target,
        last=asked.last,
        average=asked.average,
        trainings={run: steps[run] for run in sorted(steps)},
        left_out={reason: many for reason, many in left_out.items() if many},
        pairs=order.pairs,
        too_close=order.too_close,
        metrics=list(_select_metrics(measured, asked.limit)),
        none_because=_explain_none(pinned, labelled, measured),
    )


def build_signal_table(parts: ServiceParts, asked: SignalQuery) -> Iterator[Sequence[object]]:
    """All metrics as rows of a table, with the columns' names first."""
    yield SIGNAL_COLUMNS
    for metric in build_signal_card(parts, replace(asked, limit=len(catalogue.PREGEN))).metrics:
        yield list(metric.cells())


def _add_pregen(connection: Connection, identities: Collection[str], scores: MetricScores) -> None:
    """Add pre-gen scores that evaluations have and do not show. Equal tasks are parsed once."""
    columns = (task_rows.c[name] for name in ("key", "kind", "status", "summary", "summary_id"))
    query = (
        sa.select(run_tasks.c.run_id, *columns)
        .join(task_rows, task_rows.c.key == run_tasks.c.task_key)
        .where(run_tasks.c.run_id.in_(identities), task_rows.c.kind == _PREGEN)
    )
    rows: list[dict[str, Any]] = [dict(row) for row in connection.execute(query).mappings()]
    summaries.fill_summaries(connection, rows)
    parsed: dict[str, dict[str, tuple[str, StepScore]]] = {}
    for row in rows:
        if row["key"] not in parsed:
            parsed[row["key"]] = dict(_parse_scores(row))
        for name, score in parsed[row["key"]].items():
            scores.setdefault(name, {}).setdefault(row["run_id"], score)


def _parse_scores(row: TaskRow) -> Iterator[tuple[str, tuple[str, StepScore]]]:
    summary = results.parse_summary(row, ScoreSummary)
    if summary is None:
        return
    how = summary.signature
    for name, value in summary.scores.items():
        if math.isfinite(value):
            low, high = summary.intervals.get(name) or (None, None)
            yield name, (how if isinstance(how, str) else how[name], StepScore(value, low, high))


def _measure_metric(
    name: str,
    found: MetricCurves,
    order: FinalOrder,
    known: Mapping[int | None, ScoreDraws],
    asked: SignalQuery,
) -> MetricSignal | None:
    """Measure a metric; None where no training ends with a score."""
    curves = [one for one in found.curves if one is not None]
    if not any(one.find_final() for one in curves):
        return None
    sign = catalogue.find_metric(name).sign
    decided = found.curves if sign and order.pairs else []
    return MetricSignal(
        metric=catalogue.find_shown_name(name),
        signature=found.signature,
        **signal_noise.measure_signal(curves, asked.last, asked.average),
        detectable=signal_noise.find_detectable(curves, known),
        decisions=signal_noise.decide_early(order, decided, sign, asked.average),
    )


def _select_metrics(measured: Sequence[MetricSignal], limit: int) -> Iterator[MetricSignal]:
    """Select the metrics that are shown, the highest ratio of signal to noise first."""
    shown = 0
    for one in sorted(measured, key=lambda one: -1.0 if one.snr is None else one.snr, reverse=True):
        full = catalogue.find_metric(one.metric).name
        is_counted = full in catalogue.PREGEN and full not in _HEADLINE
        shown += is_counted
        if not is_counted or shown <= limit:
            yield one


def _explain_none(
    pinned: PinnedSplit, labelled: Sequence[LabelledCheckpoint], measured: Sequence[MetricSignal]
) -> str | None:
    if not labelled:
        return f"no evaluation of {pinned.place} has the labels {RUN} and {STEP}"
    if not measured:
        return f"no evaluation of the whole of {pinned.place} with these labels has scores"
    if all(one.signal is None for one in measured):
        return f"a signal needs two training runs; of each metric, {pinned.place} has one"
    return None
