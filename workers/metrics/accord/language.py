"""What the metric knows of a language, learned from captions alone: how rare words are, which words
stand in like places, and which two words follow each other.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from workers.metrics import frequencies, ngrams, references
from workers.metrics.accord.words import ENGLISH, STEMS
from workers.metrics.family import Floats
from workers.metrics.frequencies import Frequencies
from workers.metrics.tokens import Tokenizer

_LEAST = 2  # images whose captions hold a word; rarer words are new words
_KNOWN = 3  # images whose captions hold two words in a row; rarer pairs are odd
_DIMENSIONS = 64
_WINDOW = 5  # words on each side that are neighbours; the nearer, the more they count
_SMOOTHED = 0.75  # the power of a neighbour's frequency, as word2vec has it

Images = Sequence[Sequence[str]]  # captions as tokens joined by blanks, image by image
Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Language:
    """`words` are stems, made as `stems` says; `images[i]` counts the images whose captions hold
    word i, of `frequencies.images`. `vectors` (words, dimensions) have length 1. `frequencies` are
    those of n-grams of words as they are written.
    """

    words: Sequence[str]
    images: NDArray[np.uint32]
    vectors: NDArray[np.float16]
    frequencies: Frequencies
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

    def odd(self, captions: Sequence[str]) -> frozenset[Pair]:
        """The pairs of adjacent words in these captions that the language hardly has."""
        pairs = list(dict.fromkeys(pair for said in captions for pair in pairs_of(said)))
        if not pairs:
            return frozenset()
        places: dict[str, int] = {}
        keys = np.array(
            [[places.setdefault(w, len(places)) for w in pair] for pair in pairs], np.int64
        )
        words = frequencies.of_words(list(places))
        single = ngrams.pair(np.zeros(len(places), np.int64), np.arange(len(places)))
        levels = frequencies.of_levels(words, [single, ngrams.pair(keys[:, 0], keys[:, 1])])
        rare = self.frequencies.of(levels[1]) < _KNOWN
        return frozenset(pair for pair, is_rare in zip(pairs, rare, strict=True) if is_rare)


def pairs_of(tokens: str) -> list[Pair]:
    return list(pairwise(tokens.split()))


def learn(images: Images, tokenizer: Tokenizer, stems: str = ENGLISH) -> Language:
    stem = STEMS[stems]
    counts: Counter[str] = Counter()
    said_of = [[[stem(word) for word in said.split()] for said in image] for image in images]
    for image in said_of:
        counts.update({word for said in image for word in said})
    words = sorted(word for word, count in counts.items() if count >= _LEAST)
    return Language(
        words=words,
        images=np.array([counts[word] for word in words], np.uint32),
        vectors=_vectors(said_of, words),
        frequencies=frequencies.collect(references.from_tokens(images, tokenizer)),
        stems=stems,
    )


def _vectors(
    images: Sequence[Sequence[Sequence[str]]], words: Sequence[str]
) -> NDArray[np.float16]:
    """The strongest directions of positive pointwise mutual information: of words with their
    neighbours and, in equal parts, with the words of the same image's captions.
    """
    places = {word: place for place, word in enumerate(words)}
    near = _neighbours(images, places)
    together = _together(images, places)
    joint = (near + together * (near.sum() / max(together.sum(), 1.0))).tocoo()
    shares = np.asarray(joint.sum(axis=0)).ravel() ** _SMOOTHED
    shares /= shares.sum()
    totals = np.asarray(joint.sum(axis=1)).ravel()
    information = np.log(joint.data / totals[joint.row] / shares[joint.col])
    positive = sparse.csr_matrix((np.maximum(information, 0), (joint.row, joint.col)), joint.shape)
    many = min(_DIMENSIONS, len(words) - 1)
    left, strengths, _ = svds(positive, many, v0=np.ones(len(words)))
    left *= np.sign(left[np.abs(left).argmax(axis=0), np.arange(many)])  # either sign is right
    found = (left * np.sqrt(strengths))[:, ::-1]
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    unit: NDArray[np.float16] = (found / np.maximum(lengths, 1e-9)).astype(np.float16)
    return unit


def _neighbours(
    images: Sequence[Sequence[Sequence[str]]], places: Mapping[str, int]
) -> sparse.csr_matrix:
    rows, columns, values = [], [], []
    for said in (said for image in images for said in image):
        found = [places[word] for word in said if word in places]
        for at, word in enumerate(found):
            for away, other in enumerate(found[at + 1 : at + 1 + _WINDOW], 1):
                rows += [word, other]
                columns += [other, word]
                values += [1 / away] * 2
    return sparse.csr_matrix((values, (rows, columns)), (len(places), len(places)))


def _together(
    images: Sequence[Sequence[Sequence[str]]], places: Mapping[str, int]
) -> sparse.csr_matrix:
    """In how many images two different words are."""
    held = [sorted({w for said in image for w in said if w in places}) for image in images]
    columns = [places[word] for each in held for word in each]
    rows = np.repeat(np.arange(len(held)), [len(each) for each in held])
    shape = len(held), len(places)
    there = sparse.csr_matrix((np.ones(len(columns)), (rows, columns)), shape)
    found = (there.T @ there).tocsr()
    found.sort_indices()
    found.setdiag(0)  # which is there: every word is in an image with itself
    found.eliminate_zeros()
    return found
