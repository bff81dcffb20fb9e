"""Metric against metric on the same lines: paired differences from the best one, or from a chosen
one, with intervals and p of the same clustered standard error.
"""

from collections.abc import Mapping
from typing import Any

from workers.analysis.judging.correlations import NAMES, Measured
from workers.analysis.judging.intervals import Groups, of_difference
from workers.analysis.judging.preferences import KINDS, Figure
from workers.metrics.family import Floats

Known = tuple[float, Floats]  # a figure of a metric, and how much each group shifts it


def rated(
    measured: Mapping[str, Measured], signs: Mapping[str, int], groups: Groups, chosen: str | None
) -> dict[str, Any]:
    """By correlation. `signs`: -1 for distances, which agree with people if they fall as ratings
    rise; differences are those of the agreement.
    """
    found = {}
    for what in NAMES:
        known = {
            metric: (signs[metric] * each.values[what], signs[metric] * each.shifts[what])
            for metric, each in measured.items()
            if each.reason is None
        }
        found[what] = _compared(known, groups, chosen)
    return found


def pairs(
    told: Mapping[str, Figure],
    agreed: Mapping[str, Mapping[str, Floats]],
    chosen: str | None,
) -> dict[str, Any]:
    """By category, then by what a tie counts. `agreed`: by metric, what each pair adds."""
    return {
        name: {
            kind: _compared(
                {
                    metric: (figure.value(each[kind]), figure.shifts(each[kind]))
                    for metric, each in agreed.items()
                },
                figure.groups,
                chosen,
            )
            for kind in KINDS
        }
        for name, figure in told.items()
    }


def _compared(known: Mapping[str, Known], groups: Groups, chosen: str | None) -> dict[str, Any]:
    best = chosen or max(known, key=lambda metric: known[metric][0], default=None)
    if best is None or best not in known:
        return {"against": best, "metrics": {}}
    value, shifts = known[best]
    rows = {}
    for metric, (other, moved) in known.items():
        if metric != best:
            sure = of_difference(other - value, moved - shifts, groups)
            interval, p = sure or (None, None)
            rows[metric] = {"difference": other - value, "interval": interval, "p": p}
    return {"against": best, "metrics": rows}
