"""The correlation study of the pre-gen paper: how pre-gen scores correlate with post-gen scores.

Over rows of strata, a correlation says which *images* a model describes well. Whether it says which
*model* is better is another question, and a second number answers it: the rank agreement over rows
of whole sets, one for each model.

p is the usual one, for independent rows. The rows are not independent: each image is in five rows
of a model. The p of a rank agreement of few models is exact.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special, stats

from workers.bench.study.rows import RowMask, StratumRows
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints

StudyTable = dict[str, Any]
_FEWEST = 3
_FEWEST_MODELS = 5  # for a p: three or four models in the same order by chance are nothing rare


def correlate_scores(rows: StratumRows) -> StudyTable:
    """The study as a table that can be written as JSON:

    {"idf", "rows", "models", "pregen": {"of", "remain", "infinite", "constant"},
     "metrics": {"cider_d": {"rows", "of_images", "reason", "correlations": [
        {"metric", "r", "r2", "p", "datasets": {NAME: {"r", "r2", "p", "spearman", "spearman_p",
        "models"}}}, …]}}}

    The highest R² comes first. `of_images` is the share of the post-gen score's variance that lies
    between strata (of a dataset) rather than between models of the same stratum; it is null if
    there is one model.
    """
    kept, left_out = find_valid_metrics(rows)
    scores = np.stack([rows.pregen[name] for name in kept]) if kept else np.empty((0, len(rows)))
    return {
        "idf": rows.idf,
        "rows": len(rows),
        "models": len(set(zip(rows.datasets, rows.models, strict=True))),
        "pregen": {"of": len(rows.pregen), "remain": len(kept), **left_out},
        "metrics": {
            name: _metric(rows, values, kept, scores) for name, values in rows.postgen.items()
        },
    }


def find_valid_metrics(rows: StratumRows) -> tuple[list[str], dict[str, int]]:
    """Pre-gen metrics that are finite, and vary in each dataset; how many others do not."""
    parts = [np.ones(len(rows), bool), *rows.parts.values()]
    kept, infinite, constant = [], 0, 0
    for name, values in rows.pregen.items():
        if not np.isfinite(values).all():
            infinite += 1
        elif any(np.ptp(values[part]) == 0 for part in parts):
            constant += 1
        else:
            kept.append(name)
    return kept, {"infinite": infinite, "constant": constant}


def _metric(rows: StratumRows, values: Floats, names: Sequence[str], scores: Floats) -> StudyTable:
    there = np.isfinite(values)
    reason = _undefined(values[there])
    if reason is not None:
        return {"rows": int(there.sum()), "of_images": None, "reason": reason, "correlations": []}
    cells = [cell for cell, on in zip(rows.cells, there, strict=True) if on]
    return {
        "rows": len(cells),
        "of_images": compute_share_between(values[there], cells),
        "reason": None,
        "correlations": _correlations(rows, values, there, names, scores),
    }


def _undefined(values: Floats) -> str | None:
    if len(values) < _FEWEST:
        return f"a correlation needs {_FEWEST} rows, {len(values)} have it"
    if np.ptp(values) == 0:
        return "it is the same in all rows: a correlation needs different ones"
    return None


def _correlations(
    rows: StratumRows, values: Floats, there: RowMask, names: Sequence[str], scores: Floats
) -> list[StudyTable]:
    every = correlate_pearson(scores, values, there)
    parts = {name: part & there for name, part in rows.parts.items()}
    within = {name: correlate_pearson(scores, values, part) for name, part in parts.items()}
    ranks = {
        name: correlate_spearman(scores, values, part & rows.whole) for name, part in parts.items()
    }
    found = [
        {
            "metric": name,
            **_correlation(every, at),
            "datasets": {
                part: {**_correlation(within[part], at), **_agreement(ranks[part], at)}
                for part in parts
            },
        }
        for at, name in enumerate(names)
    ]
    return sorted(found, key=lambda each: -1.0 if each["r2"] is None else each["r2"], reverse=True)


CorrelationArrays = Mapping[str, Any]  # `r` and `p` of each pre-gen metric, and `n` rows


def correlate_pearson(scores: Floats, values: Floats, chosen: RowMask) -> CorrelationArrays:
    """The correlation of each row of `scores` with `values`; NaN if either is constant."""
    return _correlated(scores[:, chosen], values[chosen])


def correlate_spearman(scores: Floats, values: Floats, chosen: RowMask) -> CorrelationArrays:
    """The rank correlation of each row with `values`; p is exact up to MOST_EXACT values."""
    ranks: Floats = stats.rankdata(scores[:, chosen], axis=1)
    others: Floats = stats.rankdata(values[chosen])
    found = _correlated(ranks, others)
    if not _FEWEST <= len(others) <= MOST_EXACT:
        return found
    return {**found, "p": np.where(np.isnan(found["r"]), np.nan, compute_exact_p(ranks, others))}


def _correlated(x: Floats, y: Floats) -> CorrelationArrays:
    n = len(y)
    if n < _FEWEST:
        nothing = np.full(len(x), np.nan)
        return {"r": nothing, "p": nothing, "n": n}
    x, y = _centred(x), _centred(y[None])
    with np.errstate(invalid="ignore"):
        r = np.clip((x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum()), -1, 1)
    half = n / 2 - 1
    return {"r": r, "p": 2 * special.betainc(half, half, (1 - np.abs(r)) / 2), "n": n}


def _centred(values: Floats) -> Floats:
    """Values less their mean, on a scale on which squares neither overflow nor vanish."""
    scaled = _scaled(values)
    constant = np.ptp(values, axis=1, keepdims=True) == 0
    return np.where(constant, 0.0, _scaled(scaled - scaled.mean(1, keepdims=True)))


def _scaled(values: Floats) -> Floats:
    """Values divided by a power of 2, which costs no digit: some vary only in their last digits."""
    _, exponents = np.frexp(np.abs(values).max(1, keepdims=True))
    scaled: Floats = np.ldexp(values, -exponents)
    return scaled


def _correlation(found: CorrelationArrays, at: int) -> StudyTable:
    r = _number(found["r"][at])
    return {"r": r, "r2": None if r is None else r * r, "p": _number(found["p"][at])}


def _agreement(found: CorrelationArrays, at: int) -> StudyTable:
    r, p = _number(found["r"][at]), _number(found["p"][at])
    few = found["n"] < _FEWEST_MODELS
    return {"spearman": r, "spearman_p": None if few else p, "models": found["n"]}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def compute_share_between(values: Floats, cells: Sequence[object]) -> float | None:
    """The share of the variance that the means of the cells have; None if each has one value."""
    if len(set(cells)) == len(cells):
        return None
    numbers: dict[object, int] = {}
    places = np.array([numbers.setdefault(cell, len(numbers)) for cell in cells])
    means = np.bincount(places, values) / np.bincount(places)
    total = ((values - values.mean()) ** 2).sum()
    return float(1 - ((values - means[places]) ** 2).sum() / total)


# Ranks without ties take 15 ms, once for all metrics; the worst ties, 672 times others, 1 s. Of 12
# pairs it is 100 ms and 15 s. Of 11 pairs the usual p is too small by 4 to 25 % where the exact one
# is .01 to .05, and by up to half where it is .001 to .01.
MOST_EXACT = 10

_Doubled = tuple[int, ...]  # ranks times 2: whole numbers, whatever is shared; in rising order


def compute_exact_p(ranks: Floats, others: Floats) -> Floats:
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
    """Share of orders whose sum of products is at least as far from its mean, by the distance."""
    sums = _orders(one, other)
    far = np.abs(np.arange(len(sums)) - _expected(len(one)))
    tail: Floats = np.cumsum(np.bincount(far, sums)[::-1])[::-1] / sums.sum()
    return tail


def _orders(one: _Doubled, other: _Doubled) -> Ints:
    """Count the orders of one side for each sum of products with the other."""
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
    """Count the choices of these ranks: the fewer, the more are shared."""
    return math.prod(many + 1 for many in Counter(ranks).values())
