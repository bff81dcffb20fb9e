"""Forecasts of trainings' final scores from an early score, and the odds that a training will be
the best of its sweep.

A line by least squares, final = a + b * early, over the trainings that have ended. Errors are those
of the whole procedure, the choice of the metric included, for trainings that it has not seen:
groups of trainings (the seeds of a recipe) are left out together.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean
from typing import NamedTuple, Self

from service.runs.signal_noise import find_bound

_DRAWS, _FEWEST, _NUMBERS = 10_000, 2_000, 400_000  # draws, fewer of many trainings
_SEED = 20_260
_BEYOND = 0.25  # of the range of early scores, up to which the line is continued


class EndedTraining(NamedTuple):
    """A training with its final score of the target, and its early scores by metric. Trainings of
    one `group` are alike.
    """

    group: str
    final: float
    early: Mapping[str, float]


class Expectation(NamedTuple):
    """A final score as expected, with its 95 % interval."""

    value: float
    low: float
    high: float


class _Moments(NamedTuple):
    """Sums over points (early, final), of which a line follows."""

    many: float
    x: float
    y: float
    xx: float
    xy: float

    @classmethod
    def of(cls, points: Sequence[tuple[float, float]]) -> Self:
        return cls(
            len(points),
            math.fsum(x for x, _ in points),
            math.fsum(y for _, y in points),
            math.fsum(x * x for x, _ in points),
            math.fsum(x * y for x, y in points),
        )

    def without(self, other: "_Moments") -> "_Moments":
        n, x, y, xx, xy = other
        return _Moments(self.many - n, self.x - x, self.y - y, self.xx - xx, self.xy - xy)

    @property
    def spread(self) -> float:
        """The sum of squares about the mean of early scores; 0 where they are equal."""
        found = self.xx - self.x * self.x / self.many
        return found if found > 1e-12 * self.xx else 0.0

    @property
    def slope(self) -> float:
        spread = self.spread
        return (self.xy - self.x * self.y / self.many) / spread if spread else 0.0

    def sum_squared_errors(self, points: Iterable[tuple[float, float]]) -> float:
        """Sum the squared errors of the line at points."""
        slope = self.slope
        start = (self.y - slope * self.x) / self.many
        return math.fsum((y - start - slope * x) ** 2 for x, y in points)


class _MetricPoints:
    """Early scores of a metric and final scores by group, both less their means."""

    def __init__(self, metric: str, past: Sequence[EndedTraining]) -> None:
        self.metric = metric
        self.early = fmean(one.early[metric] for one in past)
        self.final = fmean(one.final for one in past)
        self.groups: dict[str, list[tuple[float, float]]] = {}
        for one in past:
            point = one.early[metric] - self.early, one.final - self.final
            self.groups.setdefault(one.group, []).append(point)
        self.moments = {group: _Moments.of(points) for group, points in self.groups.items()}
        self.all = _Moments.of([point for points in self.groups.values() for point in points])

    def sum_left_out(self, without: str | None = None) -> float:
        """Sum the squared errors of groups that are left out one by one, with none of `without`."""
        rest = self.all if without is None else self.all.without(self.moments[without])
        return sum(
            rest.without(self.moments[group]).sum_squared_errors(points)
            for group, points in self.groups.items()
            if group != without
        )

    def sum_group(self, group: str) -> float:
        """Sum the squared errors of a group's trainings by the line of the others."""
        rest = self.all.without(self.moments[group])
        return rest.sum_squared_errors(self.groups[group])


@dataclass(frozen=True)
class EarlyForecast:
    """A line that forecasts final scores from early ones of a metric. `error`: the root of the mean
    squared error of trainings that were left out; `early` and `final`: the means; `spread`: the sum
    of squares of early scores, as if each group were one training. The line is not continued beyond
    `lowest` and `highest`: a training that begins like no other may go on like no other.
    """

    metric: str
    groups: int
    early: float
    final: float
    slope: float
    spread: float
    error: float
    lowest: float
    highest: float

    def covers(self, early: float) -> bool:
        """Tell whether past trainings had such early scores."""
        return self.lowest <= early <= self.highest

    def _measure_distance(self, early: float) -> float:
        """Measure how far an early score is from the mean, at most from the line's end."""
        return max(self.lowest, min(self.highest, early)) - self.early

    @property
    def freedom(self) -> int:
        return self.groups - 2

    def expect(self, early: float) -> Expectation:
        """Expect a final score, with its 95 % interval."""
        away = self._measure_distance(early)
        far = away * away / self.spread if self.spread else 0.0
        reach = find_bound(self.freedom) * self.error * math.sqrt(1 + 1 / self.groups + far)
        value = self.final + self.slope * away
        return Expectation(value, value - reach, value + reach)

    def compute_odds(self, early: Sequence[float], best_final: float | None) -> list[float]:
        """Compute the probability of each training to be the best, the higher the better, beside
        one that has ended with `best_final`. The line's own error is common to all trainings.
        """
        wins = [0] * len(early)
        rng = random.Random(_SEED)  # noqa: S311  a simulation
        draws = max(_FEWEST, min(_DRAWS, _NUMBERS // len(early)))
        away = [self._measure_distance(one) for one in early]
        height = 1 / math.sqrt(self.groups)
        tilt = 1 / math.sqrt(self.spread) if self.spread else 0.0
        for _ in range(draws):
            chi_square = rng.gammavariate(self.freedom / 2, 2)
            error = self.error * math.sqrt(self.freedom / chi_square)
            mean = self.final + error * height * rng.gauss()
            slope = self.slope + error * tilt * rng.gauss()
            finals = (mean + slope * one + error * rng.gauss() for one in away)
            place, best = max(enumerate(finals), key=itemgetter(1))
            if best_final is None or best > best_final:
                wins[place] += 1
        return [won / draws for won in wins]


def choose_forecast(past: Sequence[EndedTraining], metrics: Sequence[str]) -> EarlyForecast:
    """Choose the metric whose line has the smallest errors of trainings that are left out. For its
    own error, each group is left out of the choice too. Of three or more groups.
    """
    points = [_MetricPoints(metric, past) for metric in metrics]
    errors = (_choose_metric(points, group).sum_group(group) for group in points[0].groups)
    chosen = _choose_metric(points)
    groups = len(chosen.groups)
    early = [one.early[chosen.metric] for one in past]
    beyond = _BEYOND * (max(early) - min(early))
    return EarlyForecast(
        metric=chosen.metric,
        groups=groups,
        early=chosen.early,
        final=chosen.final,
        slope=chosen.all.slope,
        spread=chosen.all.spread * groups / len(past),
        error=math.sqrt(math.fsum(errors) / len(past)),
        lowest=min(early) - beyond,
        highest=max(early) + beyond,
    )


def _choose_metric(points: Sequence[_MetricPoints], without: str | None = None) -> _MetricPoints:
    return min(points, key=lambda one: one.sum_left_out(without))


class RunOutlook(NamedTuple):
    """A training that goes on: its probability to be the best, its expected final score, the higher
    the better, and whether past trainings began like it.
    """

    odds: float
    expected: float
    is_covered: bool = True


def keep_best(runs: Sequence[RunOutlook], sure: float, ended: int = 0) -> tuple[list[int], float]:
    """Keep the fewest trainings among which, and `ended` others, the best one is with the
    probability `sure`; at least half of all, and those that began like no past one. Returns places,
    and the probability.
    """
    many = ended + len(runs)
    probability = 1 - math.fsum(run.odds for run in runs) if ended else 0.0
    order = sorted(
        range(len(runs)),
        key=lambda at: (not runs[at].is_covered, runs[at].odds, runs[at].expected),
        reverse=True,
    )
    kept: list[int] = []
    for at in order:
        is_enough = probability >= sure and 2 * (ended + len(kept)) >= many
        if is_enough and runs[at].is_covered:
            break
        kept.append(at)
        probability += runs[at].odds
    return kept, min(1.0, probability)
