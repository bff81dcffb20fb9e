"""Language statistics of `accord`: rarity, similarity and neighbours of words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from workers.metrics import frequencies, ngrams
from workers.metrics.accord.stems import ENGLISH, STEMS
from workers.metrics.family import Floats
from workers.metrics.frequencies import DocumentFrequencies

_KNOWN = 3  # images whose captions hold two words in a row; rarer pairs are odd

TokenizedCaptions = Sequence[Sequence[str]]  # captions as tokens joined by blanks, image by image
WordPair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class AccordLanguage:
    """`words` are stems, made as `stems` says; `images[i]` counts the images whose captions hold
    word i, of `frequencies.images`. `vectors` (words, dimensions) have length 1. `frequencies` are
    those of n-grams of words as they are written.
    """

    words: Sequence[str]
    images: NDArray[np.uint32]
    vectors: NDArray[np.float16]
    frequencies: DocumentFrequencies
    stems: str = ENGLISH

    def stem(self, word: str) -> str:
        return STEMS[self.stems](word)

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    @cached_property
    def unseen(self) -> float:
        """The weight of a word that is new, the highest that there is."""
        return float(np.log(self.frequencies.images))

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """Inverse document frequencies by stem, in natural logarithms."""
        found = self.unseen - np.log(self.images.astype(np.float64))
        return dict(zip(self.words, found.tolist(), strict=True))

    @cached_property
    def _table(self) -> Floats:
        """The vectors, and one of zeros for new words."""
        return np.vstack([self.vectors.astype(np.float64), np.zeros(self.vectors.shape[1])])

    def weigh(self, word: str) -> float:
        return self.weights.get(word, self.unseen)

    def vectors_of(self, words: Sequence[str]) -> Floats:
        return self._table[[self.places.get(word, -1) for word in words]]

    def odd(self, captions: Sequence[str]) -> frozenset[WordPair]:
        """The pairs of adjacent words in these captions that the language hardly has."""
        pairs = list(dict.fromkeys(pair for said in captions for pair in pair_words(said)))
        if not pairs:
            return frozenset()
        places: dict[str, int] = {}
        keys = np.array(
            [[places.setdefault(w, len(places)) for w in pair] for pair in pairs], np.int64
        )
        words = frequencies.hash_words(list(places))
        single = ngrams.pair_numbers(np.zeros(len(places), np.int64), np.arange(len(places)))
        levels = frequencies.hash_levels(
            words, [single, ngrams.pair_numbers(keys[:, 0], keys[:, 1])]
        )
        rare = self.frequencies.of(levels[1]) < _KNOWN
        return frozenset(pair for pair, is_rare in zip(pairs, rare, strict=True) if is_rare)


def pair_words(tokens: str) -> list[WordPair]:
    return list(pairwise(tokens.split()))
