"""ROUGE-L of one sentence as the caption of every image. Longest common subsequences are not sums,
but sums bound them: a common subsequence holds a token at most as often as some reference does; and
since F is concave, F of the mean precision and the mean recall is at least the mean F.
"""

import numpy as np

from workers.analysis.probing.constant.sentences import SLACK, Sentences, Stairs
from workers.analysis.probing.constant.subsequences import Subsequences
from workers.metrics import ngrams
from workers.metrics.families import rouge_l
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints
from workers.metrics.references import References


class RougeL:
    batch = 64

    def __init__(self, sentences: Sentences, references: References) -> None:
        self._sentences, self._references = sentences, references
        self._common = Subsequences(references)
        self._stairs, shortest = _stairs(references)
        self._found = self._stairs.build(np.ones(len(shortest)))
        self._recalled = self._stairs.build(1 / shortest)

    def bounds(self, places: Ints) -> Floats:
        images, own = self._references.images, self._sentences.token_counts[places]
        tokens = self._sentences.single_tokens(places)
        found, recalled = (
            self._stairs.climb(heights, tokens, len(places)) / images
            for heights in (self._found, self._recalled)
        )
        return rouge_l.f_measure(np.minimum(found / own, 1), np.minimum(recalled, 1)) * SLACK

    def scores(self, places: Ints) -> list[float]:
        return [self._score(self._sentences.tokens(place)) for place in places.tolist()]

    def _score(self, tokens: Ints) -> float:
        common, begins = self._common.lengths(tokens.tolist()), self._references.offsets[:-1]
        precision = np.maximum.reduceat(common, begins) / len(tokens)
        recall = np.maximum.reduceat(common / self._references.token_counts, begins)
        return float(np.mean(rouge_l.f_measure(precision, recall)))


def _stairs(references: References) -> tuple[Stairs, Ints]:
    """An entry for each image and token: how often one of the image's references holds the token at
    most, and the length of the shortest reference that holds it.
    """
    sizes = references.token_counts
    owners = np.repeat(np.arange(len(sizes)), sizes)
    held, counts = np.unique(ngrams.pair(owners, references.tokens), return_counts=True)
    owners, tokens = ngrams.split(held)
    images = np.repeat(np.arange(references.images), np.diff(references.offsets))[owners]
    order = np.argsort(ngrams.pair(images, tokens), kind="stable")
    held, first = np.unique(ngrams.pair(images, tokens)[order], return_index=True)
    most = np.maximum.reduceat(counts[order], first)
    shortest = np.minimum.reduceat(sizes[owners][order], first)
    return Stairs(ngrams.split(held)[1], most, len(references.words)), shortest
