"""Several ratings of one caption, used one by one or as one number."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints

Raters = Literal["flat", "mean", "mode"]


def _mode(ratings: Sequence[float]) -> float:
    """The most frequent rating; the lowest one if several are equally frequent, as in the published
    figures.
    """
    return min(statistics.multimode(ratings))


_RULES: Mapping[Raters, Callable[[Sequence[float]], Sequence[float]]] = {
    "flat": lambda ratings: ratings,
    "mean": lambda ratings: [statistics.fmean(ratings)],
    "mode": lambda ratings: [_mode(ratings)],
}


def observations(ratings: Sequence[Sequence[float]], raters: Raters) -> tuple[Floats, Ints]:
    """The ratings that are correlated with scores, and the line that each belongs to."""
    kept = [_RULES[raters](each) for each in ratings]
    lines = np.repeat(np.arange(len(kept)), [len(each) for each in kept])
    return np.array([rating for each in kept for rating in each], np.float64), lines
