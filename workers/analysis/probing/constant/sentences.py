"""Sentences as numbers, and sums over n-grams that are looked up instead of counted again."""

from collections.abc import Sequence

import numpy as np

from workers.metrics import ngrams
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints, Numbers, Occurrences
from workers.metrics.references import References

SLACK = 1 + 1e-9  # factor of a bound: sums in another order differ by less


class Sentences:
    """Sentences (tokens joined by blanks) as numbers: the references' words keep their numbers, and
    other words get the numbers after those.
    """

    def __init__(self, texts: Sequence[str], references: References) -> None:
        self.texts = texts
        self._encoded = ngrams.encode(texts, Numbers(references.numbers))
        self._number = ngrams.number_by(references.levels)
        self.token_counts = self._encoded.token_counts
        self.word_counts = self._encoded.word_counts
        self._first_tokens = ngrams.starts(self.token_counts)
        self._first_words = ngrams.starts(self.word_counts)

    def tokens(self, place: int) -> Ints:
        first = self._first_tokens[place]
        return self._encoded.tokens[first : first + self.token_counts[place]]

    def ngrams(self, places: Ints) -> list[Occurrences]:
        """The n-grams of 1 to 4 words; the captions in them are numbered as in `places`."""
        counts = self.word_counts[places]
        words = self._encoded.words[ngrams.spread(self._first_words[places], counts)]
        return list(ngrams.count(words, counts, self._number))

    def single_tokens(self, places: Ints) -> Occurrences:
        counts = self.token_counts[places]
        tokens = self._encoded.tokens[ngrams.spread(self._first_tokens[places], counts)]
        return next(ngrams.count(tokens, counts, _as_they_are))


class Stairs:
    """The entries that an n-gram has in the references, with the count of each. A sentence that
    holds the n-gram c times earns min(c, count) times each entry's value: for every n-gram, a
    staircase.
    """

    def __init__(self, numbers: Ints, counts: Ints, size: int) -> None:
        self._size = size
        self._highest = np.zeros(size + 1, np.int64)  # the last one is for what no reference holds
        np.maximum.at(self._highest, numbers, counts)
        self._begins = ngrams.starts(self._highest + 1)
        self._entries = np.repeat(np.arange(len(counts)), counts)
        self._places = ngrams.spread(self._begins[numbers] + 1, counts)
        self._upper = [
            self._begins[self._highest >= step] + step
            for step in range(2, int(self._highest.max()) + 1)
        ]

    def build(self, values: Floats) -> Floats:
        """The height of every step of all staircases, one after another."""
        total = int(self._begins[-1]) + 1
        heights: Floats = np.bincount(self._places, values[self._entries], total).astype(np.float64)
        for places in self._upper:
            heights[places] += heights[places - 1]
        return heights

    def climb(self, heights: Floats, found: Occurrences, sentences: int) -> Floats:
        """The sum that each sentence earns."""
        numbers = np.minimum(found.ngrams, self._size)
        steps = np.minimum(found.counts, self._highest[numbers])
        earned = heights[self._begins[numbers] + steps]
        totals: Floats = np.bincount(found.captions, earned, sentences).astype(np.float64)
        return totals  # bincount of nothing returns whole numbers


def _as_they_are(_: int, keys: Ints) -> tuple[Ints, Ints]:
    return keys, keys[:0]
