"""How large the error of a fit is for a training run that it has not seen: one run is left out at a
time.

Every run weighs the same, however many evaluations it has, both in the fit and in the error.
Evaluations outside the range of the other runs are not tested, because nothing would be forecast
there.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from workers.analysis.forecasting.fits import Fit
from workers.analysis.forecasting.history import Floats, Ints

LEVEL = 0.95
_NEAR = 1 / 3  # of the evaluations tested, and at least so many:
_FEWEST_NEAR = 8


@dataclass(frozen=True)
class Seen:
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
        """The share of errors within intervals made from the other runs' errors; None for fewer
        than 3 runs.
        """
        if self.many_runs < 3:
            return None
        others = {run: self._without_run(run) for run in np.unique(self.runs)}
        allowed = [
            others[run].half_width(place) for run, place in zip(self.runs, self.places, strict=True)
        ]
        return float((np.abs(self.errors) <= np.array(allowed)).mean())

    def _without_run(self, run: int) -> "Seen":
        rest = self.runs != run
        columns = (self.tested, self.places, self.errors, self.without, self.runs)
        return Seen(*(column[rest] for column in columns))


def leave_one_run_out(fit: Fit, places: Floats, values: Floats, runs: Ints) -> Seen:
    weights = weigh(runs)
    tested, errors, without = [], [], []
    for run in np.unique(runs):
        rest = runs != run
        low, high = places[rest].min(), places[rest].max()
        out = np.flatnonzero(~rest & (places >= low) & (places <= high))
        curve = fit(places[rest], values[rest], weights[rest])
        tested.append(out)
        errors.append(values[out] - curve(places[out]))
        without.append(values[out] - np.average(values[rest], weights=weights[rest]))
    which = np.concatenate(tested)
    return Seen(which, places[which], np.concatenate(errors), np.concatenate(without), runs[which])


def weigh(runs: Ints) -> Floats:
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
