"""Scores over training steps as a power law: the rival of a forecast from pre-gen scores.

score = a - b * step^-c, with an effect of each run, of maximum likelihood. An untrained
captioner is at step 1, one of epoch 1 at step 2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from helpers.histories import pregen
from parity.forecasts import EPOCH
from service.contract.results import PastEvaluation
from workers.analysis.forecast_validation import select_history
from workers.analysis.forecasts import forecast_metrics

RATES = np.geomspace(0.05, 4, 25)  # c
SHARES = (0.0, *np.geomspace(0.1, 1000, 9))  # variance between runs, by the variance within them


def fit_power_law(
    steps: np.ndarray, values: np.ndarray, runs: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """The law for a run whose effect is not known."""
    _, rate, (level, drop) = min(
        (_likelihood(steps, values, runs, rate, share) for rate in RATES for share in SHARES),
        key=lambda found: found[0],
    )
    return lambda at: level + drop * at**-rate


def _likelihood(steps, values, runs, rate, share):
    """Minus twice the log-likelihood at the best level and drop; the rate; level and drop."""
    counts = np.bincount(runs)[runs]
    pulled = 1 - 1 / np.sqrt(1 + counts * share)  # how much of the mean of its run each one loses
    columns = np.column_stack([np.ones_like(steps), steps**-rate, values])
    means = np.array([np.bincount(runs, column)[runs] / counts for column in columns.T]).T
    whole = columns - pulled[:, None] * means
    both, *_ = np.linalg.lstsq(whole[:, :2], whole[:, 2], rcond=None)
    squares = np.sum((whole[:, 2] - whole[:, :2] @ both) ** 2)
    spread = np.sum(np.log1p(counts * share) / counts)
    return len(values) * np.log(squares / len(values)) + spread, rate, both


@dataclass(frozen=True)
class RivalErrors:
    """Errors about runs that were left out: with the predictor for evaluations within the range of
    the other runs, over steps for all.
    """

    metric: str
    of_predictor: float
    of_steps: float
    of_mean: float

    @property
    def row(self) -> tuple[str, ...]:
        return self.metric, *(
            f"{error:.4f}" for error in (self.of_predictor, self.of_steps, self.of_mean)
        )


def compare_errors(evaluations: Sequence[PastEvaluation], metric: str) -> RivalErrors:
    history = select_history(evaluations, metric)
    card = forecast_metrics(evaluations, [metric], pregen(evaluations[0]))[metric]["card"]
    steps = np.array([1 + one.scores[EPOCH] for one in evaluations])
    squares = leave_one_run_out(steps, history.values, history.runs) ** 2
    by_run = np.bincount(history.runs, squares) / np.bincount(history.runs)
    errors = card["error"], float(np.sqrt(by_run.mean())), card["error_without"]
    return RivalErrors(metric, *errors)


def leave_one_run_out(steps: np.ndarray, values: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """The error of each evaluation, its run left out."""
    errors = np.empty(len(values))
    for run in np.unique(runs):
        rest = runs != run
        _, numbered = np.unique(runs[rest], return_inverse=True)
        law = fit_power_law(steps[rest], values[rest], numbered)
        errors[~rest] = values[~rest] - law(steps[~rest])
    return errors
