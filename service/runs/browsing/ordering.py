"""The order of captions by a score, and how the scores are distributed."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from prescore.models.captions import ScoreDistribution

_BINS = 30


def ordered(places: Iterable[int], values: Sequence[float], *, descending: bool) -> list[int]:
    """The places by their value. Equal ones stay in their order; those whose value is not a finite
    number come last either way.
    """
    found, missing = parted(places, values)
    return [*sorted(found, key=values.__getitem__, reverse=descending), *missing]


def parted(places: Iterable[int], values: Sequence[float]) -> tuple[list[int], list[int]]:
    """The places with a finite value, and those without one."""
    found: list[int] = []
    missing: list[int] = []
    for place in places:
        (found if math.isfinite(values[place]) else missing).append(place)
    return found, missing


def distribution(values: Sequence[float], missing: int) -> ScoreDistribution:
    """Of finite values; `missing`: how many more there would be."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    width = (high - low) / _BINS
    edges = [*(low + width * at for at in range(_BINS)), high]
    counts = [0] * _BINS
    for value in values:
        counts[min(bisect_right(edges, value), _BINS) - 1] += 1
    return ScoreDistribution(edges=edges, counts=counts, missing=missing)
