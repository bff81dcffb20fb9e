"""Error of forecasts for a training run that is left out, by history of one metric."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from service.contract.plan.estimates import PREDICTORS, explain_too_few
from service.contract.results import PastEvaluation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class MetricHistory:
    """Evaluations in any order; `runs` and `architectures` are numbered from 0."""

    values: Floats  # of the metric
    pregen: Mapping[str, Floats]  # by predictor, as they are shown
    runs: Ints
    architectures: Ints

    @property
    def many_runs(self) -> int:
        return len(np.unique(self.runs))


def select_history(evaluations: Sequence[PastEvaluation], metric: str) -> MetricHistory:
    """The evaluations that have a value of this metric; a null predictor becomes infinite."""
    kept = [one for one in evaluations if one.scores.get(metric) is not None]
    return MetricHistory(
        values=np.array([one.scores[metric] for one in kept], np.float64),
        pregen={
            name: np.array([restore_infinity(one.scores[name]) for one in kept], np.float64)
            for name in PREDICTORS
        },
        runs=_numbered([one.run for one in kept]),
        architectures=_numbered([one.architecture for one in kept]),
    )


def restore_infinity(shown: float | None) -> float:
    return math.inf if shown is None else shown


def _numbered(names: Sequence[str]) -> Ints:
    numbers = {name: at for at, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], np.int64)


Curve = Callable[[Floats], Floats]
Fit = Callable[[Floats, Floats, Floats], Curve]  # places, values, weights

_SAME = 1e-12


def fit_line(places: Floats, values: Floats, weights: Floats) -> Curve:
    share = weights / weights.sum()
    middle, level = float(share @ places), float(share @ values)
    spread = float(share @ (places - middle) ** 2)
    if spread <= _SAME * max(1.0, middle**2):
        return lambda at: np.full(len(at), level)
    slope = max(0.0, float(share @ ((places - middle) * (values - level))) / spread)
    return lambda at: level + slope * (at - middle)


def fit_monotone(places: Floats, values: Floats, weights: Floats) -> Curve:
    """Isotonic regression, linear between its points and constant outside them."""
    distinct, of = np.unique(places, return_inverse=True)
    weight = np.bincount(of, weights)
    means = np.bincount(of, weights * values) / weight
    rising = optimize.isotonic_regression(means, weights=weight).x
    return lambda at: np.interp(at, distinct, rising)


FITS: Mapping[str, Fit] = {"line": fit_line, "monotone": fit_monotone}


def fit_upper_line(places: Floats, values: Floats, weights: Floats) -> Curve:
    """The line for places beyond all of these: the better a place, the more it weighs."""
    height = places - places.min()
    return fit_line(places, values, weights * height**2 if height.any() else weights)


LEVEL = 0.95
_NEAR = 1 / 3  # of the evaluations tested, and at least so many:
_FEWEST_NEAR = 8


@dataclass(frozen=True)
class LeftOutErrors:
    """The errors of evaluations whose run was left out."""

    tested: Ints  # which evaluations
    places: Floats
    errors: Floats
    without: Floats  # the errors if the other runs' mean is the forecast
    runs: Ints

    @property
    def many_runs(self) -> int:
        return len(np.unique(self.runs))

    @property
    def error(self) -> float:
        return math.sqrt(_by_run(self.errors, self.runs).mean())

    @property
    def error_without(self) -> float:
        return math.sqrt(_by_run(self.without, self.runs).mean())

    @property
    def left(self) -> float:
        """The share of the error that is left with the predictor."""
        return self.error / self.error_without if self.error_without else 1.0

    def half_width(self, place: float) -> float:
        """Half the width of an interval for a new run at this place: from the errors near it or
        from all of them, whichever is wider. Errors of one run depend on each other, so runs are
        counted, not evaluations.
        """
        order = np.argsort(np.abs(self.places - place), kind="stable")
        second_run = int(np.argmax(self.runs[order] != self.runs[order[0]]))
        many = max(math.ceil(_NEAR * len(order)), _FEWEST_NEAR, second_run + 1)
        near = order[:many]
        return max(
            _half_width(self.errors, self.runs), _half_width(self.errors[near], self.runs[near])
        )

    @property
    def coverage(self) -> float | None:
        """The share of errors within intervals by the other runs; None for fewer than 3 runs."""
        if self.many_runs < 3:
            return None
        others = {run: self._without_run(run) for run in np.unique(self.runs)}
        allowed = [
            others[run].half_width(place) for run, place in zip(self.runs, self.places, strict=True)
        ]
        return float((np.abs(self.errors) <= np.array(allowed)).mean())

    def _without_run(self, run: int) -> "LeftOutErrors":
        rest = self.runs != run
        columns = (self.tested, self.places, self.errors, self.without, self.runs)
        return LeftOutErrors(*(column[rest] for column in columns))


_Split = tuple[Ints, NDArray[np.bool_]]  # which evaluations are forecast, from which others


def leave_one_run_out(fit: Fit, places: Floats, values: Floats, runs: Ints) -> LeftOutErrors:
    """The errors of evaluations forecast from other runs, within whose range they lie."""
    return _leave_out(fit, places, values, runs, _split_by_run(places, runs))


def leave_better_out(
    fit: Fit, places: Floats, values: Floats, runs: Ints, gap: float
) -> LeftOutErrors:
    """The errors of evaluations, each forecast as if it were the best so far: from those of other
    runs that are worse by at least `gap`. Not tested where these are too few.
    """
    return _leave_out(fit, places, values, runs, _split_by_gap(places, runs, gap))


def _split_by_run(places: Floats, runs: Ints) -> Iterator[_Split]:
    for run in np.unique(runs):
        rest = runs != run
        low, high = places[rest].min(), places[rest].max()
        yield np.flatnonzero(~rest & (places >= low) & (places <= high)), rest


def _split_by_gap(places: Floats, runs: Ints, gap: float) -> Iterator[_Split]:
    for at, place in enumerate(places):
        rest = (runs != runs[at]) & (places <= place - gap)
        if not explain_too_few(int(rest.sum()), len(np.unique(runs[rest]))):
            yield np.array([at]), rest


def _leave_out(
    fit: Fit, places: Floats, values: Floats, runs: Ints, splits: Iterable[_Split]
) -> LeftOutErrors:
    tested, errors, without = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros(0)]
    for out, rest in splits:
        weights = weigh_runs(runs[rest])
        curve = fit(places[rest], values[rest], weights)
        tested.append(out)
        errors.append(values[out] - curve(places[out]))
        without.append(values[out] - np.average(values[rest], weights=weights))
    which = np.concatenate(tested)
    return LeftOutErrors(
        which, places[which], np.concatenate(errors), np.concatenate(without), runs[which]
    )


def weigh_runs(runs: Ints) -> Floats:
    """The weights of evaluations: each run has a weight of one, shared by its evaluations."""
    counts = np.bincount(runs).astype(np.float64)
    shares: Floats = 1 / counts[runs]
    return shares


def _by_run(errors: Floats, runs: Ints) -> Floats:
    """The mean squared error of each run."""
    numbers = np.unique(runs)
    means: Floats = np.bincount(runs, errors**2)[numbers] / np.bincount(runs)[numbers]
    return means


def _half_width(errors: Floats, runs: Ints) -> float:
    squares = _by_run(errors, runs)
    quantile = float(special.stdtrit(len(squares) - 1, (1 + LEVEL) / 2))
    return quantile * math.sqrt(squares.mean())
