"""Checkpoints of trainings with their scores, from the record.

Evaluations are checkpoints by their labels: `run` and `step`; `recipe` and `seed` tell which
trainings are alike but for their seed.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.metrics import draws
from service.contract.metrics.catalogue import MetricSpec
from service.contract.metrics.draws import ScoreDraws
from service.engine import summaries
from service.engine.tables import boards, labels, runs, score_rows
from service.runs import evaluations, run_store, signal_noise
from service.runs.signal_noise import FinalOrder, LabelledTraining, ScoreCurve, StepScore
from service.runs.training_labels import RUN, STEP, read_step
from service.stored.datasets import PinnedSplit

_SEED, _RECIPE = "seed", "recipe"


@dataclass(frozen=True)
class LabelledCheckpoint:
    """A labelled evaluation."""

    id: str
    run: str
    step: float
    marks: Mapping[str, str]


@dataclass(frozen=True)
class MetricCurves:
    """A metric's scores with the signature of most of them; None for a training without any."""

    signature: str
    curves: Sequence[ScoreCurve | None]


def find_checkpoints(
    connection: Connection, pinned: PinnedSplit, most: int
) -> tuple[list[LabelledCheckpoint], int]:
    """Find the latest labelled evaluations that have ended, the latest first, and count those
    without a step.
    """
    labelled = sa.exists().where(labels.c.run_id == runs.c.id, labels.c.name == RUN)
    latest = (
        sa.select(runs.c.id)
        .where(
            runs.c.kind == evaluations.KIND.name,
            run_store.match_split(pinned),
            runs.c.status.in_(("succeeded", "failed")),
            labelled,
        )
        .order_by(runs.c.created_at.desc(), runs.c.id)
        .limit(most)
    )
    marked = run_store.read_labels(connection, connection.execute(latest).scalars())
    found = [
        LabelledCheckpoint(identity, marks[RUN], step, marks)
        for identity, marks in marked.items()
        if (step := read_step(marks.get(STEP, ""))) is not None
    ]
    return found, len(marked) - len(found)


def find_trainings(checkpoints: Sequence[LabelledCheckpoint]) -> dict[str, LabelledTraining]:
    """Find trainings by label `run`; their other labels are those of the latest evaluation."""
    found: dict[str, LabelledTraining] = {}
    for one in checkpoints:
        own = LabelledTraining(one.step, one.marks.get(_RECIPE), one.marks.get(_SEED))
        known = found.setdefault(one.run, own)
        found[one.run] = replace(known, end=max(one.step, known.end))
    return found


MetricScores = dict[
    str, dict[str, tuple[str, StepScore]]
]  # by metric and evaluation, with signatures


def read_shown_scores(
    connection: Connection,
    pinned: PinnedSplit,
    identities: Sequence[str],
    metrics: Collection[str] | None = None,
) -> MetricScores:
    """Read the scores that evaluations of the whole split show: all, or those of `metrics`."""
    query = (
        sa.select(score_rows, boards.c.metric.label("full"), boards.c.signature)
        .join(boards, boards.c.id == score_rows.c.board_id)
        .where(run_store.match_split(pinned, boards), score_rows.c.listed)
    )
    if metrics is not None:
        query = query.where(boards.c.metric.in_(metrics))
    scores: MetricScores = {}
    for row in connection.execute(query.where(score_rows.c.run_id.in_(identities))):
        score = StepScore(row.value, row.low, row.high, row.draws_id)
        scores.setdefault(row.full, {})[row.run_id] = row.signature, score
    return scores


def build_curves(
    scores: Mapping[str, tuple[str, StepScore]],
    checkpoints: Sequence[LabelledCheckpoint],
    trainings: Mapping[str, LabelledTraining],
    deciding: Collection[str] | None = None,
) -> MetricCurves:
    """Build curves, of a step that was evaluated twice of its latest score. The signature is that
    of most scores, of those of the trainings `deciding` if there are any.
    """
    having = [one for one in checkpoints if one.id in scores]
    asked = [one for one in having if deciding is not None and one.run in deciding]
    usual = Counter(scores[one.id][0] for one in asked or having).most_common(1)[0][0]
    steps: dict[str, dict[float, StepScore]] = {}
    for one in having:  # the latest first
        signature, score = scores[one.id]
        if signature == usual:
            steps.setdefault(one.run, {}).setdefault(one.step, score)
    curves = [
        ScoreCurve(training, dict(sorted(steps[run].items()))) if run in steps else None
        for run, training in trainings.items()
    ]
    return MetricCurves(usual, curves)


def read_final_draws(
    connection: Connection, metrics: Mapping[str, MetricCurves]
) -> dict[int | None, ScoreDraws]:
    """Read the draws of final scores, by id."""
    finals = (one.find_final() for found in metrics.values() for one in found.curves if one)
    wanted = [score.draws_id for score in finals if score and score.draws_id is not None]
    packed = summaries.read_draws(connection, wanted)
    known = ((at, draws.unpack_draws(each)) for at, each in packed.items())
    return {at: each for at, each in known if each is not None}


def order_finals(
    target: MetricCurves | None,
    known: Mapping[int | None, ScoreDraws],
    metric: MetricSpec,
    average: int,
) -> FinalOrder:
    """Order trainings by their final scores of the target."""
    if target is None:
        return FinalOrder((), (), 0)
    finals = [one.average_final(average) if one else None for one in target.curves]

    def differ(one: int, other: int) -> bool:
        a, b = finals[one], finals[other]
        return a is not None and b is not None and signal_noise.do_finals_differ(a, b, known)

    return FinalOrder.of([None if one is None else metric.sign * one[0] for one in finals], differ)
