"""Intervals (95 %) and p values from the influence of each observation on a figure.

Lines of one image depend on each other, and so do the ratings of one line, so formulas for
independent observations make intervals too narrow and p too small. Standard errors of Kendall's
tau b of CIDEr-D on Flickr8k-Expert: .0091 here, in one pass; .0087 by a bootstrap over images;
.0072 if lines were independent, .0049 if single ratings were. The influences of observations are
summed by group: a group's shift. The shifts give the variance. Interval and p are one test: p < .05
exactly where the interval leaves out 0.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints

Interval = tuple[float, float]

FEWEST = 10  # groups: with fewer, the variance itself is little known
_LEVEL = 0.975
_PERFECT = 1 - 1e-9


@dataclass(frozen=True)
class ObservationGroups:
    """Groups of observations: `numbers` go from 0 to `many` - 1."""

    numbers: Ints
    many: int

    @classmethod
    def of(cls, groups: Ints) -> "ObservationGroups":
        numbers: Ints = np.unique(groups, return_inverse=True)[1]
        return cls(numbers, int(numbers.max()) + 1)

    @property
    def reason(self) -> str | None:
        """Reason why there are no intervals; None if there are some."""
        if self.many >= FEWEST:
            return None
        return (
            f"no intervals and no p: they need {FEWEST} images or distinct reference sets, "
            f"found {self.many}"
        )

    @property
    def quantile(self) -> float:
        return float(stats.t.ppf(_LEVEL, self.many - 1))

    def sums(self, values: Floats) -> Floats:
        return np.bincount(self.numbers, values, self.many).astype(np.float64)

    def shifts(self, moved: Floats) -> Floats:
        """Shift of a figure by each group, from the observations' influences (mean 0)."""
        return self.sums(moved) / len(moved)

    def standard_error(self, shifts: Floats) -> float:
        return math.sqrt(float((shifts**2).sum()) * self.many / (self.many - 1))

    def p(self, value: float, error: float) -> float:
        """Compute the p value of the hypothesis that the figure is 0."""
        if not error:
            return 0.0 if value else 1.0
        return 2 * float(stats.t.sf(abs(value) / error, self.many - 1))


def compute_correlation_interval(
    value: float, shifts: Floats, groups: ObservationGroups
) -> tuple[Interval, float] | None:
    """Interval and p on Fisher's scale; None if it is perfect, or the groups are few."""
    if groups.reason or abs(value) > _PERFECT:
        return None
    middle, error = math.atanh(value), groups.standard_error(shifts) / (1 - value**2)
    half = groups.quantile * error
    return (math.tanh(middle - half), math.tanh(middle + half)), groups.p(middle, error)


def compute_difference_interval(
    value: float, shifts: Floats, groups: ObservationGroups
) -> tuple[Interval, float] | None:
    """Interval and p of a difference of two figures on the same observations."""
    if groups.reason:
        return None
    error = groups.standard_error(shifts)
    half = groups.quantile * error
    return (value - half, value + half), groups.p(value, error)


def compute_share_interval(
    value: float, shifts: Floats, groups: ObservationGroups
) -> Interval | None:
    """Wilson's interval, for as many independent pairs as would vary as much as the groups."""
    if groups.reason:
        return None
    error = groups.standard_error(shifts)
    spread = value * (1 - value)
    varies = error > 1e-12 and spread > 1e-12
    many = spread / error**2 if varies else groups.many
    shrunk = groups.quantile**2 / many
    middle = (value + shrunk / 2) / (1 + shrunk)
    half = math.sqrt(shrunk * (spread + shrunk / 4)) / (1 + shrunk)
    return max(0.0, middle - half), min(1.0, middle + half)
