"""BLEU of one sentence as the caption of every image. For each n-gram, an image counts at most as
many as one of its references holds; the lengths of the closest references depend only on the
sentence's length. So the corpus score follows from sums that are looked up.
"""

import numpy as np

from workers.analysis.probing.constant.sentences import SLACK, Sentences, Stairs
from workers.metrics.families import bleu
from workers.metrics.family import Floats
from workers.metrics.ngrams import LONGEST, Ints
from workers.metrics.references import References


class Bleu:
    batch = 256

    def __init__(self, name: str, sentences: Sentences, references: References) -> None:
        self._name, self._sentences, self._references = name, sentences, references
        self._levels = []
        for level in references.levels:
            stairs = Stairs(level.ngrams, level.most, len(level.keys))
            self._levels.append((stairs, stairs.build(np.ones(len(level.held)))))
        self._closest: dict[int, int] = {}

    def bounds(self, places: Ints) -> Floats:
        """The scores (times SLACK), computed with another power function than the metric's own."""
        order = bleu.NAMES.index(self._name) + 1
        found = self._statistics(places)
        inverse = (found["reference_length"] + bleu.SMALL) / (found["length"] + bleu.TINY)
        precisions = (found["matches"] + bleu.TINY) / (found["ngrams"] + bleu.SMALL)
        means = precisions[:, :order].prod(axis=1) ** (1 / order)
        bounds: Floats = means * np.exp(np.minimum(0, 1 - inverse)) * SLACK
        return bounds

    def scores(self, places: Ints) -> list[float]:
        found = self._statistics(places)
        rows = ({name: part[[row]] for name, part in found.items()} for row in range(len(places)))
        return [bleu.corpus(row)[self._name] for row in rows]

    def _statistics(self, places: Ints) -> dict[str, Floats]:
        """For each sentence, the sums over all images that the metric needs."""
        images, lengths = self._references.images, self._sentences.word_counts[places]
        matches = np.empty((len(places), LONGEST))
        for place, found in enumerate(self._sentences.ngrams(places)):
            stairs, heights = self._levels[place]
            matches[:, place] = stairs.climb(heights, found, len(places))
        return {
            "length": lengths.astype(np.float64) * images,
            "reference_length": np.array([self._wanted(each) for each in lengths.tolist()], float),
            "ngrams": np.maximum(0.0, lengths[:, None] - np.arange(LONGEST)) * images,
            "matches": matches,
        }

    def _wanted(self, length: int) -> int:
        """The sum over images of the reference length closest to this one."""
        if length not in self._closest:
            theirs = self._references.word_counts
            away = 2 * np.abs(theirs - length) + (
                theirs > length
            )  # if two are as near, the smaller
            nearest = np.minimum.reduceat(away, self._references.offsets[:-1])
            sides = np.where(nearest % 2, 1, -1)
            self._closest[length] = int((length + sides * (nearest // 2)).sum())
        return self._closest[length]
