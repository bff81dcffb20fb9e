"""Past systems' scores of a split's images: which are hard, and on which systems differ.

The mean over past systems of an image's influences tells two thirds of a new system's own. A past
system's distance from the line through the mean of the others tells how much is left over on each
image. Images on which more is left over are decoded earlier (Neyman 1934).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.contract.plan.estimates import FEWEST_SYSTEMS
from workers.analysis import estimation
from workers.analysis.estimation import DrawnImages
from workers.metrics.family import Floats, Statistics

_NEIGHBOURS = 20  # the share of images, as a divisor, that are about as hard as one of them
_PRIOR = 4.0  # systems that the neighbours' spread counts as
_ROUNDING = 1e-20  # a share of the variance: equal systems leave only this
_EVEN = 0.6  # the part of the odds that is the same for all images: systems have surprises


@dataclass(frozen=True)
class PastDifficulty:
    """Difficulty of images by a metric: the mean of each image's influences over past `systems`
    (mean 0, deviation 1).
    """

    column: Floats
    systems: int


@dataclass(frozen=True)
class PastSystems:
    """`odds` of each image to be decoded early (mean 1); `difficulty` by metric."""

    odds: Floats
    difficulty: Mapping[str, PastDifficulty]

    @property
    def hardness(self) -> Floats:
        """The mean of all metrics' columns, (images, 1)."""
        columns = [each.column for each in self.difficulty.values()]
        found: Floats = np.column_stack(columns).mean(axis=1, keepdims=True)
        return found

    def describe_draw(self, images: int) -> DrawnImages:
        """Describe the first `images`."""
        columns = {metric: each.column for metric, each in self.difficulty.items()}
        return DrawnImages(compute_chances(self.odds, images), columns)


def summarise_systems(scored: Mapping[str, Sequence[Statistics]]) -> PastSystems | None:
    """Summarise past systems' statistics by family; None where every family has too few."""
    spreads: list[Floats] = []
    difficulty: dict[str, PastDifficulty] = {}
    for family, systems in scored.items():
        if len(systems) < FEWEST_SYSTEMS:
            continue
        each = [estimation.compute_influences(family, statistics) for statistics in systems]
        tables = {metric: np.array([found[metric] for found in each]) for metric in each[0]}
        spreads.append(np.mean([_measure_spread(table) for table in tables.values()], axis=0))
        for metric, table in tables.items():
            difficulty[metric] = PastDifficulty(_scale(table.mean(axis=0)), len(systems))
    if not spreads:
        return None
    return PastSystems(_compute_odds(np.mean(spreads, axis=0)), difficulty)


def _scale(column: Floats) -> Floats:
    spread = float(column.std())
    return column / spread if spread > 0 else column


def _measure_spread(table: Floats) -> Floats:
    """The variance of each image that is left over (mean 1), of influences (systems, images). Few
    systems tell little of one image: it is drawn towards the mean of those as hard.
    """
    systems = len(table)
    mean = table.mean(axis=0)
    others = (systems * mean - table) / (systems - 1)
    slopes = (others * table).sum(axis=1) / np.maximum((others**2).sum(axis=1), 1e-300)
    left = ((table - slopes[:, None] * others) ** 2).mean(axis=0)
    if left.mean() <= _ROUNDING * (table**2).mean():
        return np.ones_like(left)
    pooled: Floats = (systems - 1) * left + _PRIOR * _smooth(left, mean)
    pooled /= pooled.mean()
    return pooled


def _smooth(values: Floats, places: Floats) -> Floats:
    """The mean of the values of images with similar places."""
    ranked = np.argsort(places, kind="stable")
    window = np.ones(max(1, len(values) // _NEIGHBOURS))
    counts = np.convolve(np.ones(len(values)), window, mode="same")
    smoothed = np.empty_like(values)
    smoothed[ranked] = np.convolve(values[ranked], window, mode="same") / counts
    return smoothed


def _compute_odds(spread: Floats) -> Floats:
    odds: Floats = np.sqrt(spread)
    odds *= (1 - _EVEN) / odds.mean()
    return odds + _EVEN


def compute_chances(odds: Floats, images: int) -> Floats:
    """Chances of being among the first `images`: in proportion to the odds, and at most 1."""
    chances = np.zeros(len(odds))
    certain = np.zeros(len(odds), bool)
    while True:
        open_ = ~certain
        chances[certain] = 1.0
        chances[open_] = odds[open_] * (images - certain.sum()) / odds[open_].sum()
        over = open_ & (chances >= 1)
        if not over.any():
            return chances
        certain |= over


def measure_information(odds: Floats, images: int) -> float:
    """The inverse of the variance of the estimated mean, where the odds are right, after so many
    images and not all of them, up to a factor.
    """
    return 1 / float((odds**2 * (1 / compute_chances(odds, images) - 1)).sum())
