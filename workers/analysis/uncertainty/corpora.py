"""Corpus scores of images that are drawn anew, or exchanged between two systems. They are made of
sums over images, which one matrix product gives for all draws at once. Document frequencies stay as
they are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from service.contract.metrics import families
from workers.analysis.uncertainty.resampling import Floats
from workers.metrics import postgen
from workers.metrics.family import Scores, Statistics

Corpus = dict[str, Floats]  # by metric, a score for every draw


@dataclass(frozen=True)
class Summed:
    """Scores that are made of sums: `table` (images, columns) is what is summed, and `corpus` makes
    scores from sums (draws, columns) and the number of images in each (draws).
    """

    table: Floats
    corpus: Callable[[Floats, Floats], Corpus]

    @property
    def images(self) -> int:
        return len(self.table)

    def drawn(self, weights: Floats) -> Corpus:
        """Scores of draws; `weights` (draws, images) says how often each image counts. Differences
        from the first image are summed, so counts stay whole, and what is the same for all images
        is the same in every draw.
        """
        images = weights.sum(axis=1)
        first = self.table[0]
        sums = weights @ (self.table - first) + images[:, None] * first
        return self.corpus(sums, images)


def summed(scores: Scores) -> Summed:
    """The sums that make the scores. A family that only describes captions has no statistics: its
    scores are means over captions, so the captions' scores are summed.
    """
    return of_statistics(scores.family, scores.statistics or scores.captions)


def of_statistics(family: str, statistics: Statistics) -> Summed:
    flat = [values.reshape(len(values), -1) for values in statistics.values()]
    ends = np.cumsum([values.shape[1] for values in flat])
    shapes = {name: (1, *values.shape[1:]) for name, values in statistics.items()}
    is_counted = families.FAMILIES[family].is_counted
    is_whole = postgen.FAMILIES[family].corpus is None

    def corpus(sums: Floats, images: Floats) -> Corpus:
        rows = sums if is_counted else sums / images[:, None]
        parts = dict(zip(shapes, np.split(rows, ends[:-1], axis=1), strict=True))
        if is_whole:
            return {name: values[:, 0] for name, values in parts.items()}
        found = [
            postgen.corpus_from_statistics(
                family, {name: parts[name][draw].reshape(shape) for name, shape in shapes.items()}
            )
            for draw in range(len(rows))
        ]
        return {name: np.array([each[name] for each in found]) for name in found[0]}

    return Summed(np.concatenate(flat, axis=1), corpus)


def resampled(family: str, statistics: Statistics, weights: Floats) -> Corpus:
    """By metric, the corpus score of every row of weights."""
    return of_statistics(family, statistics).drawn(weights)
