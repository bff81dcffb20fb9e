"""Captions as numbers, and their n-grams counted with arrays instead of dictionaries.

An n-gram's number is the place of its key among the keys of its length. Its key is made of
two numbers: that of the n-gram before its last word, and that of the last word.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST = 4  # n-grams of 1 to 4 words

Ints = NDArray[np.int64]
# Length of the n-grams, their keys -> their numbers, and the keys with new numbers, in their order.
Numbering = Callable[[int, Ints], tuple[Ints, Ints]]

_HALF = 32  # bits: two numbers make one key


class WordNumbers(dict[str, int]):
    """The numbers of words. A word that is asked for and has no number gets the next one."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


@dataclass(frozen=True)
class CaptionNumbers:
    """Captions one after another. `tokens` are separated by blanks, `words` by any white space:
    PTB's "3 1/2" holds a no-break space, so it is one token and two words.
    """

    tokens: Ints
    token_counts: Ints  # of each caption
    words: Ints
    word_counts: Ints


@dataclass(frozen=True)
class NgramOccurrences:
    """N-grams of one length, sorted by caption and number; `new`: keys without a number before."""

    captions: Ints
    ngrams: Ints
    counts: Ints
    new: Ints


@dataclass(frozen=True)
class NgramLevel:
    """The n-grams of one length in the references of all images.

    `held` is sorted; each entry is an image and an n-gram that its references hold. `owners`
    (references) and `counts`, from `starts[i]` to `starts[i + 1]`, say which references hold entry
    i and how often.
    """

    keys: Ints
    held: Ints
    starts: Ints
    owners: NDArray[np.integer[Any]]
    counts: NDArray[np.integer[Any]]

    @property
    def ngrams(self) -> Ints:
        return self.held & ((1 << _HALF) - 1)

    @property
    def images(self) -> Ints:
        return self.held >> _HALF

    @property
    def most(self) -> Ints:
        """Highest count of each entry's n-gram (of `held`) in one reference."""
        counts = self.counts.astype(np.int64)
        return np.maximum.reduceat(counts, self.starts[:-1]) if len(counts) else counts


def number_captions(captions: Sequence[str], numbers: WordNumbers) -> CaptionNumbers:
    """Captions as numbers. Words that have no number yet get one."""
    found = list(map(numbers.__getitem__, " ".join(captions).split(" "))) if captions else []
    tokens = np.array(found, np.int64)
    token_counts = np.array([caption.count(" ") + 1 for caption in captions], np.int64)
    parts = [[numbers[part] for part in token.split()] for token in list(numbers)]
    sizes = np.array([len(part) for part in parts], np.int64)
    flat = np.array([number for part in parts for number in part], np.int64)
    each = sizes[tokens]
    words = flat[spread_runs(compute_starts(sizes)[tokens], each)]
    return CaptionNumbers(tokens, token_counts, words, _sums(each, token_counts))


def index_references(encoded: CaptionNumbers, image_of: Ints) -> tuple[NgramLevel, ...]:
    """The n-grams of references by length; `image_of` is the image of each reference."""

    def number(_: int, keys: Ints) -> tuple[Ints, Ints]:
        table, numbers = np.unique(keys, return_inverse=True)
        return numbers, table

    levels = []
    for found in count_ngrams(encoded.words, encoded.word_counts, number):
        places = pair_numbers(image_of[found.captions], found.ngrams)
        order = np.argsort(places, kind="stable")
        held, first = np.unique(places[order], return_index=True)
        levels.append(
            NgramLevel(
                keys=found.new,
                held=held,
                starts=np.append(first, len(places)),
                owners=found.captions[order],
                counts=found.counts[order],
            )
        )
    return tuple(levels)


def number_by_levels(levels: Sequence[NgramLevel]) -> Numbering:
    """A numbering by `levels`. N-grams that no reference holds get the numbers after those."""

    def number(length: int, keys: Ints) -> tuple[Ints, Ints]:
        table = levels[length - 1].keys
        numbers, known = find_places(table, keys)
        new, places = np.unique(keys[~known], return_inverse=True)
        numbers[~known] = len(table) + places
        return numbers, new

    return number


def count_ngrams(words: Ints, word_counts: Ints, number: Numbering) -> Iterator[NgramOccurrences]:
    """Count n-grams of 1, 2, … LONGEST words, length by length."""
    captions = np.repeat(np.arange(len(word_counts)), word_counts)
    left = np.repeat(np.cumsum(word_counts), word_counts) - np.arange(len(words))
    places = np.arange(len(words))
    ngrams = np.zeros(len(words), np.int64)
    for length in range(1, LONGEST + 1):
        long_enough = left[places] >= length
        places, ngrams = places[long_enough], ngrams[long_enough]
        ngrams, new = number(length, pair_numbers(ngrams, words[places + length - 1]))
        pairs, counts = np.unique(pair_numbers(captions[places], ngrams), return_counts=True)
        yield NgramOccurrences(*split_pairs(pairs), counts, new)


def find_held(level: NgramLevel, images: Ints, ngrams: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Places in `held` of n-grams of images, and whether they are there at all."""
    return find_places(level.held, pair_numbers(images, ngrams))


def find_places(table: Ints, values: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Places of values in a sorted table, and whether they are there; else a place is invalid."""
    places = np.searchsorted(table, values)
    known = places < len(table)
    known[known] = table[places[known]] == values[known]
    return places, known


def compute_starts(sizes: Ints) -> Ints:
    """Compute the beginnings of adjacent runs; `sizes` are their lengths."""
    return np.cumsum(sizes) - sizes


def spread_runs(begins: Ints, sizes: Ints) -> Ints:
    """The numbers of all runs, by beginnings and sizes: (5, 0), (2, 1) -> 5, 6, 0."""
    return np.repeat(begins - compute_starts(sizes), sizes) + np.arange(sizes.sum())


def _sums(values: Ints, sizes: Ints) -> Ints:
    totals = np.append(0, np.cumsum(values))
    begins = compute_starts(sizes)
    sums: Ints = totals[begins + sizes] - totals[begins]
    return sums


def pair_numbers(first: Ints, second: Ints) -> Ints:
    return (first << _HALF) | second


def split_pairs(pairs: Ints) -> tuple[Ints, Ints]:
    return pairs >> _HALF, pairs & ((1 << _HALF) - 1)
