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
        """Twice how many are smaller; those that are equal count half."""
        ranks: Ints = (2 * ngrams.starts(self.sizes) + self.sizes)[self.codes]
        return ranks

    @cached_property
    def centred(self) -> Floats:
        """The rank as a share, less one half: its mean is 0."""
        return self.doubled / (2 * len(self.codes)) - 0.5

    def above(self, values: Floats) -> Floats:
        """The sum of what the larger ones have, and half of what the equal ones have."""
        sums = np.bincount(self.codes, values)
        above: Floats = (np.cumsum(sums[::-1])[::-1] - sums / 2)[self.codes]
        return above


def influences(scores: Floats, ratings: Floats) -> Mapping[str, Floats]:
    """By correlation: its derivative by the weight of each observation, times their number. The
    mean of each is 0. Neither side is constant.
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
    """With how many others each observation agrees on which side of it they are, less with how
    many it does not. Kendall's tau is the mean of this, divided by the number of pairs.
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
    """The sum of the weights of what is smaller on both sides: bit by bit of y, from the highest
    on, whoever has a 1 counts those before it that have the same bits above and a 0.
    """
    order = np.lexsort((-y, x))  # of equal x, none comes before a larger y
    found = np.zeros(len(x), np.int64)
    for bit in reversed(range(int(y.max()).bit_length())):
        prefixes, ones = y[order] >> bit + 1, (y[order] >> bit & 1).astype(bool)
        zeros = ngrams.starts(np.where(ones, 0, weights[order]))
        first = np.searchsorted(prefixes, prefixes)
        found[order] += np.where(ones, zeros - zeros[first], 0)
        order = order[np.argsort(y[order] >> bit, kind="stable")]
    return found


def _products(a: Ranked, b: Ranked) -> Floats:
    """What each observation adds to the covariance of ranks: by its own, and to others' ranks."""
    own = a.centred * b.centred
    others: Floats = (a.above(b.centred) + b.above(a.centred)) / len(own)
    return (own + others) / 3


def _of_ratio(c: Floats, a: Floats, b: Floats) -> Floats:
    """Of C / sqrt(A B), these being the means."""
    root = np.sqrt(a.mean() * b.mean())
    moved: Floats = c / root - c.mean() / root * (a / a.mean() + b / b.mean()) / 2
    return moved
