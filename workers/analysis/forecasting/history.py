"""What a team's finished evaluations say about one metric, as arrays."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.contract.metrics.forecasts import PREDICTORS
from service.contract.results import PastEvaluation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class History:
    """Evaluations in any order; `runs` and `architectures` are numbered from 0."""

    values: Floats  # of the metric
    pregen: Mapping[str, Floats]  # by predictor, as they are shown
    runs: Ints
    architectures: Ints

    @property
    def many_runs(self) -> int:
        return len(np.unique(self.runs))


def of_metric(evaluations: Sequence[PastEvaluation], metric: str) -> History:
    """The history of the evaluations that have a value of this metric. A predictor that is null
    becomes infinite.
    """
    kept = [one for one in evaluations if one.scores.get(metric) is not None]
    return History(
        values=np.array([one.scores[metric] for one in kept], np.float64),
        pregen={
            name: np.array([number(one.scores[name]) for one in kept], np.float64)
            for name in PREDICTORS
        },
        runs=_numbered([one.run for one in kept]),
        architectures=_numbered([one.architecture for one in kept]),
    )


def number(shown: float | None) -> float:
    return math.inf if shown is None else shown


def _numbered(names: Sequence[str]) -> Ints:
    numbers = {name: at for at, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], np.int64)
