"""Falls: checkpoints that are worse than their training, or others like it, let expect.

Scores are of one metric with one signature, by step, the higher the better. The rule and its
measured rates stand in the guide.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median
from typing import Literal

from service.runs.signal_noise import StepScore

FallKind = Literal["step", "trend", "run"]
StepScores = Mapping[float, StepScore]  # by step, in ascending order
_BOUND = 1.959964
_SURE = 3.0  # standard errors
# Of the way from a training's first to its best score, the least that is a fall.
_LEAST: Mapping[FallKind, float] = {"step": 0.05, "trend": 0.075, "run": 0.05}
_HALF = 0.5  # of the way, before which curves bend upwards
_EARLIER = 5  # steps before, of which it is known how much the gains of trainings differ
_FEWEST = 3  # bends, of which jitter is measured
_DEVIATION = 1.4826  # standard deviations of a normal distribution's median distance
_BEND = math.sqrt(1.5)  # a bend's standard deviation, of scores with 1


@dataclass(frozen=True)
class FoundFall:
    """A fall at a step. `difference`: from the step before, the line or the other run; `interval`:
    95 %; `beside`: the other run.
    """

    kind: FallKind
    step: float
    value: float
    expected: float
    difference: float
    interval: tuple[float, float]
    beside: str | None = None


def find_falls(own: StepScores, others: Mapping[str, StepScores]) -> list[FoundFall]:
    """Find the falls of a training, at most one of each kind a step. `others`: trainings that it
    may be compared with, by run.
    """
    training = _JudgedTraining(own)
    found: list[FoundFall] = []
    for at in range(1, len(training.steps)):
        kinds = (training.find_step_fall(at), training.find_trend_fall(at))
        found += (fall for fall in kinds if fall is not None)
    return [*found, *_find_run_falls(training, others)]


class _JudgedTraining:
    def __init__(self, scores: StepScores) -> None:
        self.scores = {step: one for step, one in scores.items() if one.error is not None}
        self.steps = list(self.scores)
        self.values = [one.value for one in self.scores.values()]
        self.first = self.values[0] if self.values else 0.0
        self.way = max(self.values, default=0.0) - self.first

    def is_past_half(self, value: float) -> bool:
        return self.way > 0 and value >= self.first + _HALF * self.way

    def find_errors(self, at: int) -> list[float]:
        """Find the errors of the scores around a step: of images, or of this training's jitter."""
        jitter = self._jitters[at]
        around = (max(0, at - 1), at, min(at + 1, len(self.steps) - 1))
        return [max(self.scores[self.steps[each]].error or 0.0, jitter) for each in around]

    def find_step_fall(self, at: int) -> FoundFall | None:
        value, before = self.values[at], self.values[at - 1]
        error = math.hypot(*self.find_errors(at)[:2])
        return self.judge("step", at, before, value - before, error)

    def find_trend_fall(self, at: int) -> FoundFall | None:
        """Find a fall below the line from the step before to the step after, where the training
        also slows down: after a plateau that a new learning rate ends, it does not.
        """
        if at < 2 or at + 1 >= len(self.steps) or not self.is_past_half(self.values[at - 1]):
            return None
        share, below = self._share(at), -self._measure_bend(at)
        left, here, right = self.find_errors(at)
        error = math.hypot(here, (1 - share) * left, share * right)
        slowing = self.values[at - 1] + self._extend(at) - self.values[at]
        if slowing <= self.find_threshold("trend", error):
            return None
        return self.judge("trend", at, self.values[at] + below, -below, error)

    def judge(
        self,
        kind: FallKind,
        at: int,
        expected: float,
        difference: float,
        error: float,
    ) -> FoundFall | None:
        """Judge a difference from what is expected: None where it is no fall."""
        if expected - self.values[at] <= self.find_threshold(kind, error):
            return None
        interval = difference - _BOUND * error, difference + _BOUND * error
        return FoundFall(kind, self.steps[at], self.values[at], expected, difference, interval)

    def find_threshold(self, kind: FallKind, error: float) -> float:
        return max(_SURE * error, _LEAST[kind] * self.way)

    def _share(self, at: int) -> float:
        before, here, after = self.steps[at - 1 : at + 2]
        return (here - before) / (after - before)

    def _measure_bend(self, at: int) -> float:
        """Measure how far a score is above the line from the step before to the step after."""
        share = self._share(at)
        return self.values[at] - (1 - share) * self.values[at - 1] - share * self.values[at + 1]

    def _extend(self, at: int) -> float:
        """Extend the gain of the step before to the length of this one."""
        first, before, here = self.steps[at - 2 : at + 1]
        gain = self.values[at - 1] - self.values[at - 2]
        return gain * (here - before) / (before - first)

    @cached_property
    def _jitters(self) -> list[float]:
        """The scatter of scores about the lines of their neighbours past half of the way: of each
        step, without the lines that it is part of.
        """
        bends = [
            (at, abs(self._measure_bend(at)))
            for at in range(1, len(self.steps) - 1)
            if self.is_past_half(self.values[at - 1])
        ]
        jitters = []
        for at in range(len(self.steps)):
            others = [bend for place, bend in bends if not -1 <= place - at <= 1]
            enough = len(others) >= _FEWEST
            jitters.append(_DEVIATION / _BEND * median(others) if enough else 0.0)
        return jitters


def _find_run_falls(own: _JudgedTraining, others: Mapping[str, StepScores]) -> Iterator[FoundFall]:
    """Find steps at which a training gained less than others like it did, and is below them now."""
    trainings = {run: _JudgedTraining(scores) for run, scores in others.items()}
    for at in range(2, len(own.steps)):
        alike = {run: one for run, one in trainings.items() if _are_alike(own, one, at)}
        if not alike:
            continue
        shortfall = _measure_shortfall(own, alike, at)
        earlier = (
            _measure_shortfall(own, alike, before) for before in range(max(1, at - _EARLIER), at)
        )
        past = [each.behind for each in earlier if each is not None]
        if shortfall is None or not past:
            continue
        noise = math.hypot(shortfall.noise, math.sqrt(fmean(each**2 for each in past)))
        ahead = [run for run, gain in shortfall.gains.items() if shortfall.is_ahead(gain)]
        if ahead:
            before, reached = own.steps[at - 1], own.values[at - 1]
            nearest = min(ahead, key=lambda run: abs(alike[run].scores[before].value - reached))
            fall = _judge_run(own, at, shortfall.behind, noise, alike[nearest], nearest)
            if fall is not None:
                yield fall


def _are_alike(own: _JudgedTraining, other: _JudgedTraining, at: int) -> bool:
    """Tell whether both have this step, and had passed half of the way of both before it."""
    before, step = own.steps[at - 1 : at + 1]
    if before not in other.scores or step not in other.scores:
        return False
    reached = own.values[at - 1], other.scores[before].value
    return all(one.is_past_half(value) for one in (own, other) for value in reached)


@dataclass(frozen=True)
class _Shortfall:
    """The gains of others at a step; how far a training is behind their median, and its error."""

    gains: Mapping[str, float]
    behind: float
    noise: float

    def is_ahead(self, gain: float) -> bool:
        """Tell whether a training gained more by at least half of that."""
        return 2 * (median(self.gains.values()) - gain) < self.behind


def _measure_shortfall(
    own: _JudgedTraining, others: Mapping[str, _JudgedTraining], at: int
) -> _Shortfall | None:
    before, step = own.steps[at - 1 : at + 1]
    pairs = {
        run: (one.scores[before], one.scores[step])
        for run, one in others.items()
        if before in one.scores and step in one.scores
    }
    if not pairs:
        return None
    gains = {run: now.value - then.value for run, (then, now) in pairs.items()}
    behind = median(gains.values()) - (own.values[at] - own.values[at - 1])
    noise = _measure_noise(own.find_errors(at)[:2], list(pairs.values()), list(gains.values()))
    return _Shortfall(gains, behind, noise)


def _measure_noise(
    errors: Sequence[float], scores: Sequence[tuple[StepScore, StepScore]], gains: Sequence[float]
) -> float:
    """Measure the error of a difference of gains: by images, or by how other gains differ."""
    images = fmean(math.hypot(*(one.error or 0.0 for one in pair)) for pair in scores)
    middle = median(gains)
    spread = _DEVIATION * median(abs(gain - middle) for gain in gains)
    return math.hypot(*errors, max(images, spread))


def _judge_run(
    own: _JudgedTraining, at: int, behind: float, noise: float, other: _JudgedTraining, run: str
) -> FoundFall | None:
    step = own.steps[at]
    if behind <= own.find_threshold("run", noise):
        return None
    difference = own.values[at] - other.scores[step].value
    error = math.hypot(own.find_errors(at)[1], other.scores[step].error or 0.0)
    interval = difference - _BOUND * error, difference + _BOUND * error
    if interval[1] >= 0:
        return None
    value = own.values[at]
    return FoundFall("run", step, value, value + behind, difference, interval, run)
