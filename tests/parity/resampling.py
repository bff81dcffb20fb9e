"""Agreement with people's ratings, and how sure it is: Kendall's tau c over drawn images."""

from collections.abc import Sequence

import numpy as np


class Resampled:
    """Tau c under resampling of images, exactly: the concordance of every two images is counted
    once, and weighted by how often each was drawn.
    """

    def __init__(self, images: Sequence[str], ratings: np.ndarray, draws: int, seed: int) -> None:
        levels, found = np.unique(ratings, return_inverse=True)
        self._levels = len(levels)
        self._images = np.unique(images, return_inverse=True)[1]
        self._counts = np.zeros((len(ratings), len(levels)))  # how often a caption got each level
        for column in found.reshape(ratings.shape).T:
            self._counts[np.arange(len(ratings)), column] += 1
        self._signs = np.sign(levels[:, None] - levels[None, :])
        count = self._images.max() + 1
        drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), draws)
        self._weights = np.vstack([np.ones(count), drawn])
        self._sizes = np.bincount(self._images) * ratings.shape[1]

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Of the images as they are, then of each draw; 0 where all scores are equal."""
        if np.ptp(scores) == 0:
            return np.zeros(len(self._weights))
        concordance = self._concordance(scores)
        agreeing = ((self._weights @ concordance) * self._weights).sum(axis=1)
        levels = min(self._levels, len(np.unique(scores)))
        return agreeing * levels / (levels - 1) / (self._weights @ self._sizes) ** 2

    def _concordance(self, scores: np.ndarray) -> np.ndarray:
        """Ordered pairs of observations that agree less those that do not, image by image."""
        count = len(self._sizes)
        found = np.zeros((count, count))
        higher = np.zeros((count, self._levels))  # captions of higher scores, by image and level
        np.add.at(higher, self._images, self._counts)
        lower = np.zeros_like(higher)
        order = np.argsort(scores, kind="stable")
        begins = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
        for equal in np.split(order, begins[1:]):
            for each in equal:
                higher[self._images[each]] -= self._counts[each]
            balance = lower - higher
            for each in equal:
                found[self._images[each]] += balance @ (self._signs.T @ self._counts[each])
            for each in equal:
                lower[self._images[each]] += self._counts[each]
        return found


def interval(taus: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(taus[1:], [0.025, 0.975])
    return float(low), float(high)
