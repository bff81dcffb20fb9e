"""Signal, noise and decision accuracy of a metric, from the scores of trainings' checkpoints.

Signal and noise are those of arXiv 2508.13144, decision accuracy that of arXiv 2504.11393.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby, pairwise
from operator import itemgetter
from statistics import NormalDist, fmean
from typing import Any, NamedTuple

from prescore.models.signals import PERCENTS, EarlyDecision
from service.contract.metrics import draws
from service.contract.metrics.draws import ScoreDraws

_BOUND = NormalDist().inv_cdf(0.975)
_SEEN = _BOUND + NormalDist().inv_cdf(0.95)  # standard errors that 95 % of tests at 5 % see


class StepScore(NamedTuple):
    """Score of a checkpoint; `draws_id`: its row in `draws`."""

    value: float
    low: float | None = None
    high: float | None = None
    draws_id: int | None = None

    @property
    def error(self) -> float | None:
        """The standard error over images."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / (2 * _BOUND)


@dataclass(frozen=True)
class LabelledTraining:
    """A training, by its labels; `end` is its last step."""

    end: float
    recipe: str | None = None
    seed: str | None = None


@dataclass(frozen=True)
class ScoreCurve:
    """A metric's scores in a training, by step in ascending order."""

    training: LabelledTraining
    scores: Mapping[float, StepScore]

    @cached_property
    def values(self) -> list[float]:
        return [score.value for score in self.scores.values()]

    def find_final(self) -> StepScore | None:
        """Find the score of the training's last step."""
        return self.scores.get(self.training.end)

    def average_final(self, many: int) -> tuple[float, StepScore] | None:
        """Average the last scores, and find that of the last step; None without the latter."""
        final = self.find_final()
        return None if final is None else (fmean(self.values[-many:]), final)

    def average_early(self, percent: float, many: int) -> float | None:
        """Average the last scores up to this part of the training's steps."""
        most = percent * self.training.end * (1 + 1e-9)  # a percent may be a rounded quotient
        early = sum(100 * step <= most for step in self.scores)
        return fmean(self.values[max(0, early - many) : early]) if early else None


def measure_signal(curves: Iterable[ScoreCurve], last: int, average: int) -> dict[str, Any]:
    """Measure signal and noises, by the names of `MetricSignal`'s fields."""
    ended = [curve for curve in curves if curve.find_final() is not None]
    finals = [fmean(curve.values[-average:]) for curve in ended]
    windows = [curve.values[-last:] for curve in ended if len(curve.values) >= last]
    seeds = _group_by_recipe(ended, finals)
    errors = [score.error for curve in ended if (score := curve.find_final())]
    known = [error for error in errors if error is not None]
    relative = min(min(curve.values) for curve in ended) > 0
    mean = fmean(finals)
    unit = mean if relative else 1.0
    signal = (max(finals) - min(finals)) / unit if len(finals) > 1 else None
    noises = {
        "checkpoints": _average_deviation(windows, relative=relative),
        "seeds": _average_deviation(seeds, relative=relative),
        "sampling": fmean(known) / unit if known else None,
    }
    most = max(noises, key=lambda source: noises[source] or 0.0)
    return {
        "trainings": len(ended),
        "mean": mean,
        "relative": relative,
        "signal": signal,
        "noise": noises["checkpoints"],
        "snr": _divide(signal, noises["checkpoints"]),
        "seed_noise": noises["seeds"],
        "seed_snr": _divide(signal, noises["seeds"]),
        "sampling_noise": noises["sampling"],
        "largest_noise": most if noises[most] else None,
    }


def _group_by_recipe(curves: Iterable[ScoreCurve], finals: Iterable[float]) -> list[list[float]]:
    """Group the final scores of trainings that are alike but for their seed."""
    groups: dict[str, dict[str, list[float]]] = {}
    for curve, final in zip(curves, finals, strict=True):
        own = curve.training
        if own.recipe is not None and own.seed is not None:
            groups.setdefault(own.recipe, {}).setdefault(own.seed, []).append(final)
    return [
        [final for finals in seeds.values() for final in finals]
        for seeds in groups.values()
        if len(seeds) > 1
    ]


def _average_deviation(groups: Sequence[Sequence[float]], *, relative: bool) -> float | None:
    """Average the standard deviations of groups of two or more scores."""
    if not groups:
        return None
    return fmean(_compute_deviation(group, relative=relative) for group in groups)


def _compute_deviation(scores: Sequence[float], *, relative: bool) -> float:
    """Compute the standard deviation, of n - 1; `statistics` is exact and 20 times slower."""
    mean = fmean(scores)
    deviation = math.dist(scores, [mean] * len(scores)) / math.sqrt(len(scores) - 1)
    return deviation / mean if relative else deviation


def _divide(signal: float | None, noise: float | None) -> float | None:
    return signal / noise if signal is not None and noise else None


def find_detectable(
    curves: Iterable[ScoreCurve], known: Mapping[int | None, ScoreDraws]
) -> float | None:
    """Find the smallest difference that 95 of 100 paired tests see, from the standard errors of the
    differences of trainings that are next to each other by their final score.
    """
    ended = (score for curve in curves if (score := curve.find_final()))
    order = sorted((score.value, score.draws_id) for score in ended if score.draws_id in known)
    squares = [
        draws.compute_standard_error(known[one], known[other]) ** 2
        for (_, one), (_, other) in pairwise(order)
    ]
    return _SEEN * math.sqrt(fmean(squares)) if squares else None


def do_finals_differ(
    one: tuple[float, StepScore],
    other: tuple[float, StepScore],
    known: Mapping[int | None, ScoreDraws],
) -> bool:
    """Tell whether final scores differ at 5 %; each with the score of the last checkpoint. Without
    draws of both, by their standard errors, as if they were of different images.
    """
    (a, first), (b, second) = one, other
    if first.draws_id in known and second.draws_id in known:
        return draws.do_scores_differ((a, b), (known[first.draws_id], known[second.draws_id]))
    return abs(a - b) > _BOUND * math.hypot(first.error or 0.0, second.error or 0.0)


class DecisionAccuracy(NamedTuple):
    """Share of orders of the end that early scores have, by the fields of `EarlyDecision`."""

    accuracy: float | None
    interval: tuple[float, float] | None
    pairs: int


@dataclass(frozen=True)
class FinalOrder:
    """The order of trainings at the end, of those pairs that are told apart. `better` and `worse`:
    of each training, a mask of the trainings that are better, or worse, than it.
    """

    better: Sequence[int]
    worse: Sequence[int]
    too_close: int

    @classmethod
    def of(cls, finals: Sequence[float | None], differ: Callable[[int, int], bool]) -> "FinalOrder":
        """Order final scores, the higher the better; `differ` is asked of each pair."""
        better, worse, too_close = [0] * len(finals), [0] * len(finals), 0
        scored = [(final, at) for at, final in enumerate(finals) if final is not None]
        order = [at for _, at in sorted(scored)]
        for place, low in enumerate(order):
            for high in order[place + 1 :]:
                if differ(low, high):
                    better[low] |= 1 << high
                    worse[high] |= 1 << low
                else:
                    too_close += 1
        return cls(better, worse, too_close)

    @property
    def pairs(self) -> int:
        return sum(mask.bit_count() for mask in self.better)

    def measure_accuracy(self, early: Sequence[float | None]) -> DecisionAccuracy:
        """Measure how often early scores, the higher the better, have the order of the end."""
        present = sum(1 << at for at, score in enumerate(early) if score is not None)
        agreed, pairs = [0] * len(early), [0] * len(early)
        below = 0
        scored = sorted((score, at) for at, score in enumerate(early) if score is not None)
        for _, equal in groupby(scored, itemgetter(0)):
            places = [at for _, at in equal]
            above = present & ~below & ~sum(1 << at for at in places)
            for at in places:
                found = (self.worse[at] & below).bit_count() + (self.better[at] & above).bit_count()
                agreed[at] = found
                pairs[at] = ((self.worse[at] | self.better[at]) & present).bit_count()
            below = present & ~above
        many = sum(pairs) // 2
        accuracy = sum(agreed) / sum(pairs) if many else None
        interval = _find_interval(agreed, pairs)
        return DecisionAccuracy(accuracy, interval, many)


def _find_interval(agreed: Sequence[int], pairs: Sequence[int]) -> tuple[float, float] | None:
    """Find the interval of decision accuracy by leaving out each training once (the jackknife) and
    Student's t; each pair is counted at both of its trainings.
    """
    right, many = sum(agreed) // 2, sum(pairs) // 2
    used = [(a, p) for a, p in zip(agreed, pairs, strict=True) if p]
    if len(used) < 3 or any(p == many for _, p in used):
        return None
    without = [(right - a) / (many - p) for a, p in used]
    mean = fmean(without)
    variance = fmean((each - mean) ** 2 for each in without) * (len(used) - 1)
    if variance == 0:
        return None
    reach = find_bound(len(used) - 1) * math.sqrt(variance)
    return max(0.0, right / many - reach), min(1.0, right / many + reach)


@cache
def find_bound(freedom: int) -> float:
    """Find Student's t at 97.5 %, from 3 by its expansion in 1 / `freedom`: 1 % off at 3."""
    if freedom < 3:
        return (12.7062, 4.30265)[freedom - 1]
    z = _BOUND
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def decide_early(
    order: FinalOrder, curves: Sequence[ScoreCurve | None], sign: int, average: int
) -> list[EarlyDecision]:
    """Measure decision accuracy at each of PERCENTS; `sign` is -1 for metrics better when low."""
    found = []
    for percent in PERCENTS:
        early = (curve.average_early(percent, average) if curve else None for curve in curves)
        signed = [None if score is None else sign * score for score in early]
        accuracy = order.measure_accuracy(signed)
        found.append(EarlyDecision(percent=percent, **accuracy._asdict()))
    return found
