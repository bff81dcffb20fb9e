"""Falls of the trainings on a split, as they are stored with evaluations.

They are decided in the transaction that ends, deletes or labels a checkpoint, so that answers read
them with the evaluation, and its version tells that they have changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from prescore.models.evaluations import Fall, FallBeside
from service.contract.metrics import catalogue
from service.engine import history
from service.engine.tables import boards, labels, runs, score_rows
from service.runs import falls, run_store, training_labels
from service.runs.falls import FoundFall
from service.runs.signal_noise import StepScore
from service.runs.training_labels import RUN, SWEEP

_EVALUATION = "evaluation"  # the kind of run
_LATEST = 1000  # labelled evaluations of a split that are looked at
_TRAININGS = 11  # the latest of them: one, and ten beside it
_CHECKPOINTS = 200  # the latest of a training
_SPLIT = ("team", "dataset_name", "dataset_captions", "split")
_FALLS = TypeAdapter(list[Fall])


class TrainingGroup(NamedTuple):
    """Trainings on a split that are compared: those of a sweep, or all."""

    split: tuple[str, ...]
    sweep: str | None


@dataclass(frozen=True)
class _StoredCheckpoint:
    id: str
    run: str
    step: float
    marks: Mapping[str, str]
    falls: str | None


class _CheckpointScore(NamedTuple):
    checkpoint: _StoredCheckpoint
    metric: str  # as it was requested
    score: StepScore  # the higher the better


_Trainings = Mapping[str, Mapping[float, _CheckpointScore]]  # by run and step, in ascending order


def read_falls(stored: str | None) -> list[Fall]:
    return [] if stored is None else _FALLS.validate_json(stored)


def find_group(connection: Connection, identity: str) -> TrainingGroup | None:
    """Find the trainings that a checkpoint's own is compared with; None for other evaluations."""
    marks = run_store.read_labels(connection, [identity])[identity]
    if RUN not in marks or training_labels.find_step(marks) is None:
        return None
    own = sa.select(*(runs.c[name] for name in _SPLIT)).where(runs.c.id == identity)
    return TrainingGroup(tuple(connection.execute(own).one()), marks.get(SWEEP))


def settle_groups(
    connection: Connection, identity: str, former: TrainingGroup | None = None
) -> None:
    """Decide anew the falls of the trainings beside a checkpoint, and beside those that it was one
    of before. Other evaluations whose falls change get a new version.
    """
    group = find_group(connection, identity)
    for each in dict.fromkeys((group, former)):
        if each is not None:
            _settle_group(connection, each, identity)
    if former is not None and group is None:
        own = runs.update().where(runs.c.id == identity, runs.c.falls.is_not(None))
        connection.execute(own.values(falls=None))


def _settle_group(connection: Connection, group: TrainingGroup, identity: str) -> None:
    checkpoints = _find_checkpoints(connection, group)
    found: dict[str, list[Fall]] = {one.id: [] for one in checkpoints}
    for metric, trainings in _read_trainings(connection, checkpoints):
        for run, own in trainings.items():
            others = {name: one for name, one in trainings.items() if name != run}
            for checkpoint, fall in _find_falls(own, others, catalogue.find_metric(metric).sign):
                found[checkpoint].append(fall)
    for one in checkpoints:
        if group.sweep is None and SWEEP in one.marks:
            continue  # its own group decides
        stored = _FALLS.dump_json(found[one.id]).decode() if found[one.id] else None
        if stored != one.falls:
            own_row = runs.update().where(runs.c.id == one.id)
            connection.execute(own_row.values(falls=stored))
            if one.id != identity:
                history.add_version(connection, one.id)


def _find_checkpoints(connection: Connection, group: TrainingGroup) -> list[_StoredCheckpoint]:
    """Find the checkpoints of the latest trainings, the latest first."""
    query = (
        sa.select(runs.c.id, runs.c.falls, labels.c.value.label("run"))
        .join(labels, sa.and_(labels.c.run_id == runs.c.id, labels.c.name == RUN))
        .where(
            runs.c.kind == _EVALUATION,
            runs.c.status.in_(("succeeded", "failed")),
            *(runs.c[name] == at for name, at in zip(_SPLIT, group.split, strict=True)),
        )
    )
    if group.sweep is not None:
        swept = labels.alias()
        own = swept.c.run_id == runs.c.id, swept.c.name == SWEEP, swept.c.value == group.sweep
        query = query.join(swept, sa.and_(*own))
    latest = query.order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(_LATEST)
    rows: dict[str, list[Any]] = {}
    for row in connection.execute(latest):
        if row.run in rows or len(rows) < _TRAININGS:
            rows.setdefault(row.run, []).append(row)
    chosen = [row for own_rows in rows.values() for row in own_rows[:_CHECKPOINTS]]
    marks = run_store.read_labels(connection, [row.id for row in chosen])
    return [
        _StoredCheckpoint(row.id, row.run, step, marks[row.id], row.falls)
        for row in chosen
        if (step := training_labels.find_step(marks[row.id])) is not None
    ]


def _read_trainings(
    connection: Connection, checkpoints: Sequence[_StoredCheckpoint]
) -> Iterator[tuple[str, _Trainings]]:
    """Read trainings by metric and signature; of a step that was evaluated twice, the latest."""
    known = {one.id: (place, one) for place, one in enumerate(checkpoints)}
    query = (
        sa.select(score_rows, boards.c.metric.label("full"), boards.c.signature)
        .join(boards, boards.c.id == score_rows.c.board_id)
        .where(score_rows.c.run_id.in_(list(known)), score_rows.c.listed)
        .where(score_rows.c.low.is_not(None), score_rows.c.high.is_not(None))
    )
    rows = sorted(connection.execute(query), key=lambda row: known[row.run_id][0])
    found: dict[tuple[str, str], dict[str, dict[float, _CheckpointScore]]] = {}
    for row in rows:
        metric = catalogue.find_metric(row.full)
        if metric.family != "postgen" or not metric.sign:
            continue
        _, one = known[row.run_id]
        bounds = sorted((metric.sign * row.low, metric.sign * row.high))
        score = _CheckpointScore(one, row.metric, StepScore(metric.sign * row.value, *bounds))
        steps = found.setdefault((row.full, row.signature), {}).setdefault(one.run, {})
        steps.setdefault(one.step, score)
    for (metric_name, _), trainings in sorted(found.items()):
        ordered = {run: dict(sorted(steps.items())) for run, steps in trainings.items()}
        yield metric_name, ordered


def _find_falls(
    own: Mapping[float, _CheckpointScore], others: _Trainings, sign: int
) -> Iterator[tuple[str, Fall]]:
    """Find the falls of a training's checkpoints, by the evaluation's id."""
    beside = {run: _take_scores(steps.values()) for run, steps in others.items()}
    for fall in falls.find_falls(_take_scores(own.values()), beside):
        other = None if fall.beside is None else others[fall.beside][fall.step].checkpoint
        at = own[fall.step]
        yield at.checkpoint.id, _describe_fall(fall, at.metric, sign, other)


def _take_scores(steps: Iterable[_CheckpointScore]) -> dict[float, StepScore]:
    return {one.checkpoint.step: one.score for one in steps}


def _describe_fall(
    fall: FoundFall, metric: str, sign: int, other: _StoredCheckpoint | None
) -> Fall:
    """Describe a fall in the metric's own direction."""
    low, high = sorted(sign * bound for bound in fall.interval)
    return Fall(
        metric=metric,
        kind=fall.kind,
        step=fall.step,
        value=sign * fall.value,
        expected=sign * fall.expected,
        difference=sign * fall.difference,
        interval=(low, high),
        beside=None if other is None else FallBeside(evaluation=other.id, labels=dict(other.marks)),
    )
