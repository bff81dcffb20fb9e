"""CIDEr-D of one sentence as the caption of every image. What a reference adds for an n-gram
depends on the sentence's length and norm.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.analysis.probing.constant.sentences import SLACK, Sentences, Stairs
from workers.metrics.families import cider
from workers.metrics.family import Floats, ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.ngrams import Ints, Level, Occurrences
from workers.metrics.references import References


@dataclass(frozen=True)
class _Weighted:
    """N-grams of one length: what each entry in the references adds, without the factors that
    depend on the sentence.
    """

    stairs: Stairs
    owners: NDArray[np.integer[Any]]
    values: Floats
    idf: Floats  # the last one is for an n-gram that no reference holds

    def heights(self, penalties: Floats) -> Floats:
        return self.stairs.build(self.values * penalties[self.owners])

    def cosines(self, heights: Floats, found: Occurrences, sentences: int) -> Floats:
        weights = found.counts * self.idf[np.minimum(found.ngrams, len(self.idf) - 1)]
        norms = np.sqrt(np.bincount(found.captions, weights**2, sentences))
        products = self.stairs.climb(heights, found, sentences)
        return np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)


class CiderD:
    batch = 1  # the metric itself computes a score, image by image, and few are needed

    def __init__(self, sentences: Sentences, references: References) -> None:
        self._sentences, self._references = sentences, references
        self._levels = [_weigh(references, level) for level in references.levels]
        self._length, self._heights = -1, list[Floats]()

    def bounds(self, places: Ints) -> Floats:
        """The scores (times SLACK), summed in another order than the metric's. This is fastest if
        sentences of equal length are next to each other.
        """
        lengths = self._sentences.word_counts[places]
        bounds = np.zeros(len(places))
        for length in np.unique(lengths).tolist():
            chosen = np.flatnonzero(lengths == length)
            bounds[chosen] = self._sums(length, places[chosen])
        return bounds * SLACK

    def scores(self, places: Ints) -> list[float]:
        images = np.arange(self._references.images)
        texts = [self._sentences.texts[place] for place in places.tolist()]
        tasks = (
            ScoringInput([text] * len(images), images, self._references, Jvm()) for text in texts
        )
        return [cider.corpus_d(cider.measure_d(task).statistics)["cider_d"] for task in tasks]

    def _sums(self, length: int, places: Ints) -> Floats:
        if length != self._length:
            penalties = cider.penalties(np.array([length]), self._references.word_counts)
            self._heights = [level.heights(penalties) for level in self._levels]
            self._length = length
        parts = zip(self._levels, self._heights, self._sentences.ngrams(places), strict=True)
        sums = np.zeros(len(places))
        for level, heights, found in parts:
            sums += level.cosines(heights, found, len(places))
        return sums * (cider.SCALE / len(self._levels) / self._references.images)


def _weigh(references: References, level: Level) -> _Weighted:
    unseen = float(np.log(references.images))
    frequencies = np.bincount(level.ngrams, minlength=len(level.keys))
    idf = np.append(unseen - np.log(np.maximum(frequencies, 1)), unseen)
    numbers = np.repeat(level.ngrams, np.diff(level.starts))
    counts = level.counts.astype(np.int64)
    weights = counts * idf[numbers]
    sizes = np.diff(references.offsets)
    shares = np.repeat(1 / sizes, sizes)  # an image counts once, however many references it has
    norms = np.sqrt(np.bincount(level.owners, weights**2, len(shares)))[level.owners]
    values = weights * idf[numbers] * shares[level.owners]
    values = np.divide(values, norms, out=np.zeros_like(values), where=norms > 0)
    return _Weighted(Stairs(numbers, counts, len(level.keys)), level.owners, values, idf)
