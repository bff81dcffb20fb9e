"""How closely scores follow ratings: Pearson, Spearman, Kendall's tau b and c.

scipy computes p as if all observations were independent; the intervals do not (`intervals.py`).
"""

from typing import Any

import numpy as np
from scipy import stats

from workers.analysis.judging.intervals import intervals
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints

NAMES = ("pearson", "spearman", "kendall_b", "kendall_c")
_P_VALUES = ("pearson_p", "spearman_p", "kendall_p")
_FEWEST = 3
_SAME = 1e-12  # the rounding of a score that is computed in two ways


def correlate(scores: Floats, ratings: Floats, groups: Ints) -> dict[str, Any]:
    """Correlations by name, with p values and 95 % `intervals`. What cannot be computed is None,
    and `reason` says why. Observations of one group depend on each other.
    """
    reason = _undefined(scores, ratings)
    if reason is not None:
        nothing = dict.fromkeys((*NAMES, *_P_VALUES))
        return nothing | {"intervals": dict.fromkeys(NAMES), "reason": reason}
    pearson, spearman = stats.pearsonr(scores, ratings), stats.spearmanr(scores, ratings)
    b, c = (stats.kendalltau(scores, ratings, variant=variant) for variant in ("b", "c"))
    found = {
        name: float(each.statistic)
        for name, each in zip(NAMES, (pearson, spearman, b, c), strict=True)
    }
    p = {
        name: float(each.pvalue)
        for name, each in zip(_P_VALUES, (pearson, spearman, b), strict=True)
    }
    bounds, reason = intervals(scores, ratings, groups, found)
    return found | p | {"intervals": bounds, "reason": reason}


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
