"""A caption, and the references of an image, with what is compared of them: computed once each."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workers.metrics.accord.language import Language, Pair, pairs_of
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints

_NONE = -2  # no word: before each reference in `lined`


@dataclass(frozen=True, eq=False)
class Said:
    """One caption. `words` are its stems."""

    tokens: str
    language: Language

    @cached_property
    def words(self) -> Sequence[str]:
        return [self.language.stem(word) for word in self.tokens.split()]

    @cached_property
    def counts(self) -> Mapping[str, int]:
        return Counter(self.words)

    @cached_property
    def weights(self) -> Floats:
        return np.array([self.language.weigh(word) for word in self.words])

    @cached_property
    def mass(self) -> float:
        return math.fsum(self.weights.tolist())

    @cached_property
    def vectors(self) -> Floats:
        return self.language.vectors_of(self.words)

    @cached_property
    def written(self) -> Sequence[Pair]:
        """Adjacent words as they are written."""
        return pairs_of(self.tokens)


@dataclass(frozen=True, eq=False)
class Image:
    """The references of an image, of which there is at least one."""

    said: Sequence[Said]

    @cached_property
    def agreed(self) -> Mapping[str, float]:
        """By word, how often references hold it after the first that does, by weight; all words by
        weight where no word is in two of them.
        """
        weigh = self.said[0].language.weigh
        holders = Counter(word for each in self.said for word in each.counts)
        several = {word: (n - 1) * weigh(word) for word, n in holders.items() if n > 1}
        return several if sum(several.values()) > 0 else {word: weigh(word) for word in holders}

    @cached_property
    def agreed_mass(self) -> float:
        return math.fsum(self.agreed.values())

    @cached_property
    def written(self) -> frozenset[Pair]:
        return frozenset(pair for each in self.said for pair in each.written)

    @cached_property
    def beside(self) -> "Beside | None":
        return Beside.of(self)


@dataclass(frozen=True, eq=False)
class Beside:
    """The words of all references with any, side by side: the numbers of words, where each
    reference begins, weights, vectors, and what each adds to the mass of agreed words; how much
    each reference weighs; and `lined`, the numbers of words, with a place without one before each
    reference.
    """

    numbers: Mapping[str, int]
    words: Ints
    begins: Ints
    weights: Floats
    vectors: Floats
    agreed: Floats
    masses: Floats
    lined: Ints

    @classmethod
    def of(cls, image: Image) -> "Beside | None":
        filled = [each for each in image.said if each.words]
        if not filled:
            return None
        flat = [word for each in filled for word in each.words]
        numbers = {word: number for number, word in enumerate(dict.fromkeys(flat))}
        sizes = np.array([len(each.words) for each in filled])
        often = Counter(flat)
        words = np.array([numbers[word] for word in flat], np.int64)
        begins = np.cumsum(sizes) - sizes
        return cls(
            numbers=numbers,
            words=words,
            begins=begins,
            weights=np.concatenate([each.weights for each in filled]),
            vectors=np.concatenate([each.vectors for each in filled]),
            agreed=np.array([image.agreed.get(word, 0.0) / often[word] for word in flat]),
            masses=np.array([each.mass for each in filled]),
            lined=np.insert(words, begins, _NONE),
        )
