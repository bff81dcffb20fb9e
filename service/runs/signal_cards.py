"""The card of a split: signal, noise and early decisions of each metric, from the record alone.

Evaluations are checkpoints of trainings by their labels: `run` and `step`; `recipe` and `seed` tell
which trainings are alike but for their seed.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.signals import SIGNAL_COLUMNS, MetricSignal, SignalCard
from service.contract import results
from service.contract.metrics import catalogue, draws
from service.contract.metrics.draws import ScoreDraws
from service.contract.results import ScoreSummary, TaskRow
from service.engine import summaries
from service.engine.service_parts import ServiceParts
from service.engine.tables import boards, labels, run_tasks, runs, score_rows, task_rows
from service.runs import evaluations, leaderboard, run_store, signal_noise
from service.runs.signal_noise import FinalOrder, LabelledTraining, ScoreCurve, StepScore
from service.stored import datasets
from service.stored.datasets import PinnedSplit

_MOST = 500  # the latest labelled evaluations, which take 3 s
_NO_STEP = "no label step that is a number from 0"
_NO_SCORES = "no scores of the whole split"
_RUN, _STEP, _SEED, _RECIPE = "run", "step", "seed", "recipe"
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


@dataclass(frozen=True)
class _Checkpoint:
    """A labelled evaluation."""

    id: str
    run: str
    step: float
    marks: Mapping[str, str]


@dataclass(frozen=True)
class _MetricCurves:
    """A metric's scores with the signature of most of them; None for a training without any."""

    signature: str
    curves: Sequence[ScoreCurve | None]


def build_signal_card(parts: ServiceParts, asked: SignalQuery) -> SignalCard:
    """The card; InvalidRequest if the target is neither better high nor low."""
    leaderboard.check_direction(asked.target, "target")
    pinned = datasets.pin_usual_split(parts.records, asked.dataset, asked.split)
    with parts.records.reading() as connection:
        labelled, without_step = _find_checkpoints(connection, pinned)
        scores = _read_shown(connection, pinned, [one.id for one in labelled])
        whole = {identity for found in scores.values() for identity in found}
        checkpoints = [one for one in labelled if one.id in whole]
        _add_pregen(connection, whole, scores)
        trainings = _find_trainings(checkpoints)
        metrics = {
            name: _build_curves(scores[name], checkpoints, trainings)
            for name in catalogue.sort_metric_names(scores)
        }
        known = _read_draws(connection, metrics)
    order = _order_finals(metrics.get(catalogue.find_metric(asked.target).name), known, asked)
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


def _find_checkpoints(connection: Connection, pinned: PinnedSplit) -> tuple[list[_Checkpoint], int]:
    """Find the evaluations of trainings that have ended, the latest first, and count those without
    a step.
    """
    labelled = sa.exists().where(labels.c.run_id == runs.c.id, labels.c.name == _RUN)
    latest = (
        sa.select(runs.c.id)
        .where(
            runs.c.kind == evaluations.KIND.name,
            run_store.match_split(pinned),
            runs.c.status.in_(("succeeded", "failed")),
            labelled,
        )
        .order_by(runs.c.created_at.desc(), runs.c.id)
        .limit(_MOST)
    )
    marked: dict[str, dict[str, str]] = {
        identity: {} for identity in connection.execute(latest).scalars()
    }
    for row in connection.execute(sa.select(labels).where(labels.c.run_id.in_(list(marked)))):
        marked[row.run_id][row.name] = row.value
    found = [
        _Checkpoint(identity, marks[_RUN], step, marks)
        for identity, marks in marked.items()
        if (step := _read_step(marks.get(_STEP, ""))) is not None
    ]
    return found, len(marked) - len(found)


def _read_step(text: str) -> float | None:
    try:
        step = float(text)
    except ValueError:
        return None
    return step if 0 <= step < math.inf else None


def _find_trainings(checkpoints: Sequence[_Checkpoint]) -> dict[str, LabelledTraining]:
    """Find trainings by label `run`; their other labels are those of the latest evaluation."""
    found: dict[str, LabelledTraining] = {}
    for one in checkpoints:
        own = LabelledTraining(one.step, one.marks.get(_RECIPE), one.marks.get(_SEED))
        known = found.setdefault(one.run, own)
        found[one.run] = replace(known, end=max(one.step, known.end))
    return found


_Scores = dict[str, dict[str, tuple[str, StepScore]]]  # by metric and evaluation, with signatures


def _read_shown(connection: Connection, pinned: PinnedSplit, identities: Sequence[str]) -> _Scores:
    """Read the scores that evaluations of the whole split show."""
    query = (
        sa.select(score_rows, boards.c.metric.label("full"), boards.c.signature)
        .join(boards, boards.c.id == score_rows.c.board_id)
        .where(run_store.match_split(pinned, boards), score_rows.c.listed)
    )
    scores: _Scores = {}
    for row in connection.execute(query.where(score_rows.c.run_id.in_(identities))):
        score = StepScore(row.value, row.low, row.high, row.draws_id)
        scores.setdefault(row.full, {})[row.run_id] = row.signature, score
    return scores


def _add_pregen(connection: Connection, identities: Collection[str], scores: _Scores) -> None:
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


def _build_curves(
    scores: Mapping[str, tuple[str, StepScore]],
    checkpoints: Sequence[_Checkpoint],
    trainings: Mapping[str, LabelledTraining],
) -> _MetricCurves:
    """Build curves, of a step that was evaluated twice of its latest score."""
    having = [one for one in checkpoints if one.id in scores]
    usual = Counter(scores[one.id][0] for one in having).most_common(1)[0][0]
    steps: dict[str, dict[float, StepScore]] = {}
    for one in having:  # the latest first
        signature, score = scores[one.id]
        if signature == usual:
            steps.setdefault(one.run, {}).setdefault(one.step, score)
    curves = [
        ScoreCurve(training, dict(sorted(steps[run].items()))) if run in steps else None
        for run, training in trainings.items()
    ]
    return _MetricCurves(usual, curves)


def _read_draws(
    connection: Connection, metrics: Mapping[str, _MetricCurves]
) -> dict[int | None, ScoreDraws]:
    """Read the draws of final scores, by id."""
    finals = (one.find_final() for found in metrics.values() for one in found.curves if one)
    wanted = [score.draws_id for score in finals if score and score.draws_id is not None]
    packed = summaries.read_draws(connection, wanted)
    known = ((at, draws.unpack_draws(each)) for at, each in packed.items())
    return {at: each for at, each in known if each is not None}


def _order_finals(
    target: _MetricCurves | None, known: Mapping[int | None, ScoreDraws], asked: SignalQuery
) -> FinalOrder:
    """Order trainings by their final scores of the target."""
    if target is None:
        return FinalOrder((), (), 0)
    sign = 1 if catalogue.find_metric(asked.target).higher_is_better else -1
    finals = [one.average_final(asked.average) if one else None for one in target.curves]

    def differ(one: int, other: int) -> bool:
        a, b = finals[one], finals[other]
        return a is not None and b is not None and signal_noise.do_finals_differ(a, b, known)

    return FinalOrder.of([None if one is None else sign * one[0] for one in finals], differ)


def _measure_metric(
    name: str,
    found: _MetricCurves,
    order: FinalOrder,
    known: Mapping[int | None, ScoreDraws],
    asked: SignalQuery,
) -> MetricSignal | None:
    """Measure a metric; None where no training ends with a score."""
    curves = [one for one in found.curves if one is not None]
    if not any(one.find_final() for one in curves):
        return None
    higher = catalogue.find_metric(name).higher_is_better
    decided = [] if higher is None or not order.pairs else found.curves
    return MetricSignal(
        metric=catalogue.find_shown_name(name),
        signature=found.signature,
        **signal_noise.measure_signal(curves, asked.last, asked.average),
        detectable=signal_noise.find_detectable(curves, known),
        decisions=signal_noise.decide_early(order, decided, 1 if higher else -1, asked.average),
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
    pinned: PinnedSplit, labelled: Sequence[_Checkpoint], measured: Sequence[MetricSignal]
) -> str | None:
    if not labelled:
        return f"no evaluation of {pinned} has the labels {_RUN} and {_STEP}"
    if not measured:
        return f"no evaluation of the whole of {pinned} with these labels has scores"
    if all(one.signal is None for one in measured):
        return f"a signal needs two trainings; of each metric, {pinned} has one"
    return None
