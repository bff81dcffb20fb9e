"""Agreement over systems: correlation of systems' mean scores with their mean ratings.

Intervals come from resampled images: they say how sure the figure is for these systems, not for
others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from workers.analysis.resamples import TRIALS, draw_resamples
from workers.bench.judging.intervals import FEWEST, ObservationGroups
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints

NAMES = ("pearson", "spearman", "kendall_b")

_LEAST = 3  # systems
_DIGITS = 10  # of a mean: further ones are rounding
_SAME = 10.0**-_DIGITS


def correlate_systems(
    systems: Sequence[str | None],
    scores: Mapping[str, Floats],
    ratings: Floats,
    images: Ints,
) -> dict[str, Any]:
    """Correlate systems' mean scores with mean ratings, by metric; empty if no line names one."""
    names = list(dict.fromkeys(name for name in systems if name is not None))
    if not names:
        return {}
    lines = np.array([at for at, name in enumerate(systems) if name is not None], np.int64)
    own = np.array([names.index(name) for name in systems if name is not None], np.int64)
    groups = ObservationGroups.of(images[lines])
    given = np.stack([ratings[lines], *(values[lines] for values in scores.values())])
    rated, *means = _means(given, own, len(names), groups)
    found: dict[str, Any] = {
        "n": len(names),
        "lines": len(lines),
        "clusters": groups.many,
        "ratings": dict(zip(names, rated[0].tolist(), strict=True)),
        "metrics": {},
    }
    for metric, each in zip(scores, means, strict=True):
        found["metrics"][metric] = _row(each, rated, groups) | {
            "scores": dict(zip(names, _numbers(each[0]), strict=True))
        }
    return found


def _row(scores: Floats, ratings: Floats, groups: ObservationGroups) -> dict[str, Any]:
    """Correlate means (1 + resamples, systems), the first of which are those of the file itself."""
    reason = _undefined(scores[0], ratings[0])
    if reason is not None:
        return {**dict.fromkeys(NAMES), "intervals": dict.fromkeys(NAMES), "reason": reason}
    whole = np.isfinite(scores).all(axis=1) & np.isfinite(ratings).all(axis=1)
    drawn = _correlations(scores[whole], ratings[whole])
    few = groups.many < FEWEST
    return {
        **{name: float(values[0]) for name, values in drawn.items()},
        "intervals": {
            name: None if few else [float(end) for end in np.nanquantile(values, (0.025, 0.975))]
            for name, values in drawn.items()
        },
        "reason": groups.reason,
    }


def _undefined(scores: Floats, ratings: Floats) -> str | None:
    if len(scores) < _LEAST:
        return f"expected at least {_LEAST} systems, found {len(scores)}"
    for what, values in (("rating", ratings), ("score", scores)):
        if not np.isfinite(values).all():
            return f"expected finite numbers, some mean {what} is not"
        if np.ptp(values) <= _SAME * np.abs(values).max():
            return f"every system has the same mean {what}"
    return None


def _means(values: Floats, systems: Ints, many: int, groups: ObservationGroups) -> Floats:
    """The systems' means of each row of values: (rows, 1 + resamples, systems). The first are over
    all images; the others over as many images, drawn with repetition. A system that a draw leaves
    without lines has no mean: it is nan.
    """
    cells = groups.numbers * many + systems
    table = np.stack(
        [
            np.bincount(cells, each, groups.many * many).reshape(groups.many, many)
            for each in (np.ones(len(systems)), *values)
        ],
        axis=1,
    )
    flat = table.reshape(groups.many, -1)
    once = np.ones((1, groups.many))
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = [times @ flat for times in (once, *draw_resamples(groups.many, TRIALS))]
        counts, *totals = np.concatenate(sums).reshape(-1, len(values) + 1, many).swapaxes(0, 1)
        means: Floats = np.stack(totals) / counts
    return means


def _correlations(x: Floats, y: Floats) -> dict[str, Floats]:
    """Correlations of each row of x with the same row of y; nan where one of them is constant."""
    x, y = ((side / np.abs(side).max()).round(_DIGITS) for side in (x, y))
    ranks = (stats.rankdata(side, axis=1) for side in (x, y))
    first, second = np.triu_indices(x.shape[1], 1)
    signs = (np.sign(side[:, first] - side[:, second]) for side in (x, y))
    return {"pearson": _rows(x, y), "spearman": _rows(*ranks), "kendall_b": _ratio(*signs)}


def _rows(x: Floats, y: Floats) -> Floats:
    return _ratio(*(side - side.mean(axis=1, keepdims=True) for side in (x, y)))


def _ratio(x: Floats, y: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return ratio


def _numbers(values: Floats) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]
