"""The correlation study of the pre-gen paper: how pre-gen scores correlate with post-gen scores.

Over rows of strata, a correlation says which *images* a model describes well. Whether it says which
*model* is better is another question, and a second number answers it: the rank agreement over rows
of whole sets, one for each model.

p is the usual one, for independent rows. The rows are not independent: each image is in five rows
of a model. The p of a rank agreement of few models is exact.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special, stats

from workers.analysis.study import orders
from workers.analysis.study.rows import Chosen, Rows
from workers.metrics.family import Floats

Found = dict[str, Any]
_FEWEST = 3
_FEWEST_MODELS = 5  # for a p: three or four models in the same order by chance are nothing rare


def study(rows: Rows) -> Found:
    """The study as a table that can be written as JSON:

    {"idf", "rows", "models", "pregen": {"of", "remain", "infinite", "constant"},
     "metrics": {"cider_d": {"rows", "of_images", "reason", "correlations": [
        {"metric", "r", "r2", "p", "datasets": {NAME: {"r", "r2", "p", "spearman", "spearman_p",
        "models"}}}, …]}}}

    The highest R² comes first. `of_images` is the share of the post-gen score's variance that lies
    between strata (of a dataset) rather than between models of the same stratum; it is null if
    there is one model.
    """
    kept, left_out = valid(rows)
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


def valid(rows: Rows) -> tuple[list[str], dict[str, int]]:
    """The pre-gen metrics that are finite in all rows and constant neither over all of them nor
    within a dataset; and how many others are infinite, and how many constant.
    """
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


def _metric(rows: Rows, values: Floats, names: Sequence[str], scores: Floats) -> Found:
    there = np.isfinite(values)
    reason = _undefined(values[there])
    if reason is not None:
        return {"rows": int(there.sum()), "of_images": None, "reason": reason, "correlations": []}
    cells = [cell for cell, on in zip(rows.cells, there, strict=True) if on]
    return {
        "rows": len(cells),
        "of_images": between(values[there], cells),
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
    rows: Rows, values: Floats, there: Chosen, names: Sequence[str], scores: Floats
) -> list[Found]:
    every = pearson(scores, values, there)
    parts = {name: part & there for name, part in rows.parts.items()}
    within = {name: pearson(scores, values, part) for name, part in parts.items()}
    ranks = {name: spearman(scores, values, part & rows.whole) for name, part in parts.items()}
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


Correlated = Mapping[str, Any]  # `r` and `p` of each pre-gen metric, and `n` rows


def pearson(scores: Floats, values: Floats, chosen: Chosen) -> Correlated:
    """The correlation of each row of `scores` with `values`; NaN if either is constant."""
    return _correlated(scores[:, chosen], values[chosen])


def spearman(scores: Floats, values: Floats, chosen: Chosen) -> Correlated:
    """The rank correlation of each row of `scores` with `values`; equal values share a rank. Its p
    is exact where there are at most `orders.MOST`.
    """
    ranks: Floats = stats.rankdata(scores[:, chosen], axis=1)
    others: Floats = stats.rankdata(values[chosen])
    found = _correlated(ranks, others)
    if not _FEWEST <= len(others) <= orders.MOST:
        return found
    return {**found, "p": np.where(np.isnan(found["r"]), np.nan, orders.p_values(ranks, others))}


def _correlated(x: Floats, y: Floats) -> Correlated:
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
    """Values divided by a power of 2, which costs no digit: some metrics vary only in their last
    digits.
    """
    _, exponents = np.frexp(np.abs(values).max(1, keepdims=True))
    scaled: Floats = np.ldexp(values, -exponents)
    return scaled


def _correlation(found: Correlated, at: int) -> Found:
    r = _number(found["r"][at])
    return {"r": r, "r2": None if r is None else r * r, "p": _number(found["p"][at])}


def _agreement(found: Correlated, at: int) -> Found:
    r, p = _number(found["r"][at]), _number(found["p"][at])
    few = found["n"] < _FEWEST_MODELS
    return {"spearman": r, "spearman_p": None if few else p, "models": found["n"]}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def between(values: Floats, cells: Sequence[object]) -> float | None:
    """The share of the variance that the means of the cells have; None if each has one value."""
    if len(set(cells)) == len(cells):
        return None
    numbers: dict[object, int] = {}
    places = np.array([numbers.setdefault(cell, len(numbers)) for cell in cells])
    means = np.bincount(places, values) / np.bincount(places)
    total = ((values - values.mean()) ** 2).sum()
    return float(1 - ((values - means[places]) ** 2).sum() / total)
