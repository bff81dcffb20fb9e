"""How closely scores follow ratings: Pearson, Spearman, Kendall's tau b and c."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from workers.analysis.judging.influences import influences
from workers.analysis.judging.intervals import Groups, of_correlation
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints

NAMES = ("pearson", "spearman", "kendall_b", "kendall_c")
P_VALUES: Mapping[str, str] = {  # the field of each correlation's p
    "pearson": "pearson_p",
    "spearman": "spearman_p",
    "kendall_b": "kendall_p",
    "kendall_c": "kendall_c_p",
}
_FEWEST = 3
_SAME = 1e-12  # the rounding of a score that is computed in two ways


@dataclass(frozen=True)
class Measured:
    """Correlations by name, and how much each group shifts them; or why there are none."""

    values: Mapping[str, float]
    shifts: Mapping[str, Floats]
    reason: str | None = None


def correlate(scores: Floats, ratings: Floats, groups: Ints) -> dict[str, Any]:
    """Correlations by name, with p values and 95 % `intervals`. What cannot be computed is None,
    and `reason` says why. Observations of one group depend on each other.
    """
    grouped = Groups.of(groups)
    return row(measure(scores, ratings, grouped), grouped)


def measure(scores: Floats, ratings: Floats, groups: Groups) -> Measured:
    if (reason := _undefined(scores, ratings)) is not None:
        return Measured({}, {}, reason)
    results = (
        stats.pearsonr(scores, ratings),
        stats.spearmanr(scores, ratings),
        *(stats.kendalltau(scores, ratings, variant=variant) for variant in ("b", "c")),
    )
    values = {name: float(each.statistic) for name, each in zip(NAMES, results, strict=True)}
    shifts = {name: groups.shifts(moved) for name, moved in influences(scores, ratings).items()}
    return Measured(values, shifts | {"pearson": _jackknife(scores, ratings, groups)})


def _jackknife(x: Floats, y: Floats, groups: Groups) -> Floats:
    """The groups' shifts of Pearson's correlation, each by leaving the group out. By influences
    alone, which a few extreme lines make too small, 6.4 of 100 intervals of 40 images lost 0.
    """
    x, y = (side - side.mean() for side in (x, y))
    n, sx, sy, xx, yy, xy = (
        each.sum() - each for each in map(groups.sums, (np.ones(len(x)), x, y, x * x, y * y, x * y))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        without = (n * xy - sx * sy) / np.sqrt((n * xx - sx**2) * (n * yy - sy**2))
    if not np.isfinite(without).all():
        return groups.shifts(influences(x, y)["pearson"])
    shifts: Floats = (without.mean() - without) * (groups.many - 1) / groups.many
    return shifts


def row(measured: Measured, groups: Groups) -> dict[str, Any]:
    """What `correlate` returns."""
    if measured.reason is not None:
        nothing = dict.fromkeys((*NAMES, *P_VALUES.values()))
        return nothing | {"intervals": dict.fromkeys(NAMES), "reason": measured.reason}
    sure = {
        name: of_correlation(value, measured.shifts[name], groups)
        for name, value in measured.values.items()
    }
    perfect = ", ".join(name for name, found in sure.items() if found is None)
    said = f"no interval and no p where it is perfect: {perfect}" if perfect else None
    return {
        **measured.values,
        **{P_VALUES[name]: found and found[1] for name, found in sure.items()},
        "intervals": {name: found and found[0] for name, found in sure.items()},
        "reason": groups.reason or said,
    }


def _undefined(scores: Floats, ratings: Floats) -> str | None:
    if len(scores) < _FEWEST:
        ratings_there = "1 rating" if len(scores) == 1 else f"{len(scores)} ratings"
        return f"{ratings_there}: a correlation needs at least {_FEWEST}"
    for what, values in (("rating", ratings), ("score", scores)):
        if not np.isfinite(values).all():
            return f"expected finite numbers, some {what} is not"
        if np.ptp(values) <= _SAME * np.abs(values).max():
            return f"every {what} is {values[0]:.4g}: a correlation needs different ones"
    return None
