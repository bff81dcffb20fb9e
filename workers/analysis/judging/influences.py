"""How much each observation moves a correlation: its influence, in O(n log² n)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workers.metrics import ngrams
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints


@dataclass(frozen=True)
class Ranked:
    """One side of the observations: `codes` number its distinct values from the smallest on,
    `sizes` says how many observations have each.
    """

    codes: Ints
    sizes: Ints

    @classmethod
    def of(cls, values: Floats) -> "Ranked":
        _, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
        return cls(codes, sizes)

    @cached_property
    def doubled(self) -> Ints:
        """Twice the number of smaller observations; equal ones count half."""
        ranks: Ints = (2 * ngrams.starts(self.sizes) + self.sizes)[self.codes]
        return ranks

    @cached_property
    def centred(self) -> Floats:
        """The rank as a share, less one half: its mean is 0."""
        return self.doubled / (2 * len(self.codes)) - 0.5

    def above(self, values: Floats) -> Floats:
        """For each observation, the sum of the values of larger ones, and half of those of equal
        ones.
        """
        sums = np.bincount(self.codes, values)
        above: Floats = (np.cumsum(sums[::-1])[::-1] - sums / 2)[self.codes]
        return above


def influences(scores: Floats, ratings: Floats) -> Mapping[str, Floats]:
    """For each correlation, its derivative by the weight of each observation, times the number of
    observations. The mean of each is 0. Neither side may be constant.
    """
    x, y = Ranked.of(scores), Ranked.of(ratings)
    dx, dy = scores - scores.mean(), ratings - ratings.mean()
    tau = net_agreements(x, y) / len(scores)
    differ_x, differ_y = (1 - side.sizes[side.codes] / len(scores) for side in (x, y))
    levels = min(len(x.sizes), len(y.sizes))
    return {
        "pearson": _of_ratio(dx * dy, dx**2, dy**2),
        "spearman": 3 * _of_ratio(_products(x, y), _products(x, x), _products(y, y)),
        "kendall_b": 2 * _of_ratio(tau, differ_x, differ_y),
        "kendall_c": 2 * (tau - tau.mean()) * levels / (levels - 1),
    }


def net_agreements(x: Ranked, y: Ranked) -> Ints:
    """For each observation, the number of other observations that lie on the same side of it in x
    and in y, minus the number of those that do not. Kendall's tau is the mean of this, divided by
    the number of pairs that an observation is in.
    """
    if len(y.sizes) > len(x.sizes):
        x, y = y, x
    cells, own, counts = np.unique(
        y.codes * len(x.sizes) + x.codes, return_inverse=True, return_counts=True
    )
    cell_y, cell_x = np.divmod(cells, len(x.sizes))
    below = 4 * _below(cell_x, cell_y, counts) + counts  # quarters: an equal side counts half
    below += 2 * (ngrams.starts(counts) - ngrams.starts(y.sizes)[cell_y])
    by_x = np.lexsort((cell_y, cell_x))
    below[by_x] += 2 * (ngrams.starts(counts[by_x]) - ngrams.starts(x.sizes)[cell_x[by_x]])
    net: Ints = below[own] + len(own) - x.doubled - y.doubled
    return net


def _below(x: Ints, y: Ints, weights: Ints) -> Ints:
    """For each cell, the sum of the weights of the cells that are smaller on both sides. It goes
    through the bits of y from the highest: a cell that has a 1 counts the cells before it that have
    a 0 and the same higher bits.
    """
    order = np.lexsort((-y, x))  # if x is equal, the larger y comes first
    found = np.zeros(len(x), np.int64)
    for bit in reversed(range(int(y.max()).bit_length())):
        prefixes, ones = y[order] >> bit + 1, (y[order] >> bit & 1).astype(bool)
        zeros = ngrams.starts(np.where(ones, 0, weights[order]))
        first = np.searchsorted(prefixes, prefixes)
        found[order] += np.where(ones, zeros - zeros[first], 0)
        order = order[np.argsort(y[order] >> bit, kind="stable")]
    return found


def _products(a: Ranked, b: Ranked) -> Floats:
    """What each observation adds to the covariance of ranks: by its own ranks, and by what it adds
    to others' ranks.
    """
    own = a.centred * b.centred
    others: Floats = (a.above(b.centred) + b.above(a.centred)) / len(own)
    return (own + others) / 3


def _of_ratio(c: Floats, a: Floats, b: Floats) -> Floats:
    """The influence on C / sqrt(A B), where A, B and C are the means of a, b and c."""
    root = np.sqrt(a.mean() * b.mean())
    moved: Floats = c / root - c.mean() / root * (a / a.mean() + b / b.mean()) / 2
    return moved
