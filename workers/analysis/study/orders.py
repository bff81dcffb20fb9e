"""The exact p of rank correlations of few pairs: over all orders in which one side may stand.

The usual formula is of values from a normal distribution, not of orders. Of 6 pairs 2 orders of 720
agree or disagree perfectly, p = .0028, and the formula says 0.
"""

import math
from collections import Counter
from functools import lru_cache

import numpy as np

from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints

# Ranks without ties take 15 ms, once for all metrics; the worst ties, 672 times others, 1 s. Of 12
# pairs it is 100 ms and 15 s. Of 11 pairs the usual p is too small by 4 to 25 % where the exact one
# is .01 to .05, and by up to half where it is .001 to .01.
MOST = 10

_Doubled = tuple[int, ...]  # ranks times 2: whole numbers, whatever is shared; in rising order


def p_values(ranks: Floats, others: Floats) -> Floats:
    """The p of each row of `ranks` with `others`, two-sided: the share of orders of `others` with a
    correlation at least as far from 0. Equal values share a rank, in every order.
    """
    doubled, fixed = (np.rint(2 * side).astype(np.int64) for side in (ranks, others))
    far = np.abs(doubled @ fixed - _expected(len(fixed)))
    key = tuple(np.sort(fixed).tolist())
    rows = zip(np.sort(doubled, axis=1).tolist(), far.tolist(), strict=True)
    return np.array([_tail(tuple(row), key)[at] for row, at in rows])


def _expected(n: int) -> int:
    """The mean, over all orders, of the sum of products of doubled ranks."""
    return n * (n + 1) ** 2


@lru_cache(maxsize=4096)
def _tail(one: _Doubled, other: _Doubled) -> Floats:
    """By how far the sum of products is from its mean: the share of orders that are as far."""
    sums = _orders(one, other)
    far = np.abs(np.arange(len(sums)) - _expected(len(one)))
    tail: Floats = np.cumsum(np.bincount(far, sums)[::-1])[::-1] / sums.sum()
    return tail


def _orders(one: _Doubled, other: _Doubled) -> Ints:
    """How many orders of one side have each sum of products with the other."""
    if _states(one) < _states(other):
        one, other = other, one
    values = Counter(other)
    most = int(np.dot(one, other))  # both rise
    empty = np.eye(1, most + 1, dtype=np.int64)[0]  # one way to have the sum 0
    ways: dict[tuple[int, ...], Ints] = {tuple(values.values()): empty}  # by what is left
    for rank in one:
        after: dict[tuple[int, ...], Ints] = {}
        for left, sums in ways.items():
            for place, (value, many) in enumerate(zip(values, left, strict=True)):
                if many:
                    rest = (*left[:place], many - 1, *left[place + 1 :])
                    into = after.setdefault(rest, np.zeros(most + 1, np.int64))
                    into[rank * value :] += many * sums[: most + 1 - rank * value]
        ways = after
    (found,) = ways.values()
    return found


def _states(ranks: _Doubled) -> int:
    """How many choices of these ranks there are: the fewer, the more are shared."""
    return math.prod(many + 1 for many in Counter(ranks).values())
