"""Lists of trainings: checkpoints on a split with one label `run`, with scores over steps."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.evaluations import Fall
from prescore.models.overviews import (
    LATEST_CHECKPOINTS,
    MOST_STEPS,
    BestStep,
    CaptionerTraining,
    CaptionerTrainingList,
    TrainingForecast,
    TrainingStep,
)
from prescore.models.runs import UNFINISHED
from service.contract.api.field_types import moment
from service.contract.metrics import catalogue
from service.contract.metrics.catalogue import MetricSpec
from service.contract.results import StoredEvaluation
from service.engine.service_parts import ServiceParts
from service.engine.tables import boards, labels, runs, score_rows
from service.runs import evaluations, run_lists, run_store, training_labels
from service.runs.run_lists import RunQuery
from service.runs.run_store import RunView
from service.runs.training_falls import read_falls
from service.runs.training_labels import EPOCH, RUN, STEP

_KINDS = ("run", "trend", "step")  # of falls, the one that tells most first
_COLUMNS = tuple(
    runs.c[name]
    for name in (
        *("id", "dataset_name", "dataset_version", "dataset_digest", "dataset_captions"),
        *("split", "status", "created_at", "falls", "collapsed"),
    )
)
_SCORE = tuple(score_rows.c[name] for name in ("run_id", "value", "low", "high"))
_Scores = Mapping[str, Mapping[str, Any]]  # rows of scores by full name and evaluation


@dataclass(frozen=True)
class TrainingQuery:
    """A request; `dataset` is `name[@version][/split]`. Trainings without the metric `usual` show
    another one, unless `metric` is asked for.
    """

    dataset: str | None
    metric: str | None
    usual: str
    limit: int


@dataclass(frozen=True)
class _ListedCheckpoint:
    row: Any  # of `runs`
    step: float


@dataclass(frozen=True)
class _ListedTraining:
    """A training's checkpoints, the latest first; `scores`: rows by full name and evaluation."""

    run: str
    checkpoints: Sequence[_ListedCheckpoint]
    metric: MetricSpec
    scores: Mapping[str, Any]

    @property
    def shown_metric(self) -> str:
        return catalogue.find_shown_name(self.metric.name)

    def choose_checkpoints(self) -> list[_ListedCheckpoint]:
        """Choose one checkpoint of each step, in ascending order: the latest with a score."""
        chosen: dict[float, _ListedCheckpoint] = {}
        for one in self.checkpoints:
            known = chosen.setdefault(one.step, one)
            if known.row.id not in self.scores and one.row.id in self.scores:
                chosen[one.step] = one
        return [chosen[step] for step in sorted(chosen)]

    def find_waiting(self) -> _ListedCheckpoint | None:
        """Find the latest checkpoint that has not ended and has no score."""
        of_step = reversed(self.choose_checkpoints())
        return next((one for one in of_step if one.row.status in UNFINISHED), None)

    def describe(self, forecast: TrainingForecast | None) -> CaptionerTraining:
        steps = [self._describe_step(one) for one in self.choose_checkpoints()]
        best = self._find_best(steps)
        latest = self.checkpoints[0].row
        return CaptionerTraining(
            run=self.run,
            dataset=run_store.describe_split(latest),
            metric=self.shown_metric,
            higher_is_better=self.metric.higher_is_better,
            checkpoints=len(steps),
            steps=thin_steps(steps, best),
            best=best,
            forecast=forecast,
            running=sum(one.row.status in UNFINISHED for one in self.checkpoints),
            latest_at=moment(latest.created_at),
        )

    def _find_best(self, steps: Sequence[TrainingStep]) -> BestStep | None:
        scored = [
            BestStep(step=one.step, evaluation=one.evaluation, value=one.value)
            for one in steps
            if one.value is not None
        ]
        sign = self.metric.sign
        return max(scored, key=lambda one: sign * one.value, default=None) if sign else None

    def _describe_step(self, one: _ListedCheckpoint) -> TrainingStep:
        score = self.scores.get(one.row.id)
        falls = sorted(read_falls(one.row.falls), key=lambda fall: _KINDS.index(fall.kind))
        own = [fall for fall in falls if self._is_of_metric(fall)]
        return TrainingStep(
            step=one.step,
            evaluation=one.row.id,
            value=None if score is None else score.value,
            interval=None if score is None or score.low is None else (score.low, score.high),
            status=one.row.status,
            is_fallen=bool(own),
            fall=next(iter([*own, *falls]), None),
            is_collapsed=one.row.collapsed,
        )

    def _is_of_metric(self, fall: Fall) -> bool:
        return catalogue.find_metric(fall.metric).name == self.metric.name


def list_trainings(parts: ServiceParts, asked: TrainingQuery) -> CaptionerTrainingList:
    """List trainings, the one whose evaluation was submitted last first."""
    with parts.records.reading() as connection:
        found = _find_checkpoints(connection, asked)
        wanted = catalogue.find_metric(asked.metric or asked.usual)
        scores = _read_scores(connection, found.values(), [wanted.name])
        if asked.metric is None:
            known = scores.get(wanted.name, {})
            others = [one for one in found.values() if not _have_score(one, known)]
            scores = {**_read_scores(connection, others, catalogue.POSTGEN.keys()), **scores}
        trainings = [
            _choose_scores(run, checkpoints, scores, asked)
            for (run, *_), checkpoints in found.items()
        ]
        forecasts = _read_forecasts(connection, trainings)
    pairs = zip(trainings, forecasts, strict=True)
    return CaptionerTrainingList(items=[one.describe(forecast) for one, forecast in pairs])


def thin_steps(steps: Sequence[TrainingStep], best: BestStep | None) -> list[TrainingStep]:
    """Thin steps evenly to MOST_STEPS; the first, the last, the best and falls are kept."""
    if len(steps) <= MOST_STEPS:
        return list(steps)
    last = len(steps) - 1
    first = [0, last, *(at for at, one in enumerate(steps) if best and one.step == best.step)]
    falls = [at for at, one in enumerate(steps) if one.is_fallen]
    kept = dict.fromkeys([*first, *falls][:MOST_STEPS])
    others = [at for at in range(len(steps)) if at not in kept]
    room = MOST_STEPS - len(kept)
    even = [others[number * len(others) // room] for number in range(room)]
    return [steps[at] for at in sorted([*kept, *even])]


def _find_checkpoints(
    connection: Connection, asked: TrainingQuery
) -> dict[tuple[str, ...], list[_ListedCheckpoint]]:
    """Find the checkpoints of the latest trainings by run and split, the latest first."""
    query = (
        sa.select(*_COLUMNS, *(_select_label(name) for name in (RUN, STEP, EPOCH)))
        .where(sa.exists().where(labels.c.run_id == runs.c.id, labels.c.name == RUN))
        .where(runs.c.kind == evaluations.KIND.name, runs.c.status != "canceled")
        .where(*run_lists.filter_runs(RunQuery(asked.dataset)))
        .order_by(runs.c.created_at.desc(), runs.c.id.desc())
        .limit(LATEST_CHECKPOINTS)
    )
    found: dict[tuple[str, ...], list[_ListedCheckpoint]] = {}
    for row in connection.execute(query):
        marked = {STEP: row.step, EPOCH: row.epoch}
        step = training_labels.find_step(
            {name: at for name, at in marked.items() if at is not None}
        )
        key = row.run, row.dataset_name, row.dataset_captions, row.split
        if step is not None and (key in found or len(found) < asked.limit):
            found.setdefault(key, []).append(_ListedCheckpoint(row, step))
    return found


def _select_label(name: str) -> sa.Label[str]:
    """A column of a run's label, None without it."""
    own = labels.alias()
    value = sa.select(own.c.value).where(own.c.run_id == runs.c.id, own.c.name == name)
    return value.scalar_subquery().label(name)


def _read_scores(
    connection: Connection,
    trainings: Iterable[Sequence[_ListedCheckpoint]],
    metrics: Collection[str],
) -> _Scores:
    """Read the scores of these metrics that trainings have on boards of the whole split."""
    identities = [one.row.id for checkpoints in trainings for one in checkpoints]
    query = (
        sa.select(*_SCORE, boards.c.metric.label("full"), boards.c.signature)
        .join(boards, boards.c.id == score_rows.c.board_id)
        .where(score_rows.c.run_id.in_(identities), score_rows.c.listed)
        .where(boards.c.metric.in_(metrics))
    )
    found: dict[str, dict[str, Any]] = {}
    for row in connection.execute(query):
        found.setdefault(row.full, {})[row.run_id] = row
    return found


def _have_score(checkpoints: Sequence[_ListedCheckpoint], scores: Mapping[str, Any]) -> bool:
    return any(one.row.id in scores for one in checkpoints)


def _choose_scores(
    run: str, checkpoints: Sequence[_ListedCheckpoint], scores: _Scores, asked: TrainingQuery
) -> _ListedTraining:
    """Choose a training's metric, and its scores with the signature of the latest."""
    metric = catalogue.find_metric(asked.metric or asked.usual)
    if asked.metric is None and not _have_score(checkpoints, scores.get(metric.name, {})):
        having = (
            name for name in catalogue.POSTGEN if _have_score(checkpoints, scores.get(name, {}))
        )
        metric = catalogue.find_metric(next(having, asked.usual))
    of_metric = scores.get(metric.name, {})
    rows = [of_metric[one.row.id] for one in checkpoints if one.row.id in of_metric]
    alike = {row.run_id: row for row in rows if row.signature == rows[0].signature}
    return _ListedTraining(run, checkpoints, metric, alike)


def _read_forecasts(
    connection: Connection, trainings: Sequence[_ListedTraining]
) -> list[TrainingForecast | None]:
    """Read the forecast of each training's latest checkpoint that has no score yet."""
    waiting = [one.find_waiting() for one in trainings]
    identities = [one.row.id for one in waiting if one is not None]
    rows = connection.execute(run_store.ROW.where(runs.c.id.in_(identities))).all()
    looked = {one.row.id: one for one in run_store.load_runs(connection, rows, whole=False)}
    return [
        None if one is None else _find_forecast(looked[one.row.id], one.step, training.metric)
        for training, one in zip(trainings, waiting, strict=True)
    ]


def _find_forecast(looked: RunView, step: float, metric: MetricSpec) -> TrainingForecast | None:
    found = evaluations.show_forecast(looked.tasks, looked.request(StoredEvaluation))
    known = found if isinstance(found, dict) else {}
    for name, one in known.items():
        if catalogue.find_metric(name).name == metric.name and one.value is not None:
            return TrainingForecast(value=one.value, interval=one.interval, step=step)
    return None
