"""Document frequencies of a corpus that is not present, kept by a hash of each n-gram. CIDEr-D is
scored with them on that corpus's scale, and no caption can be read from them.

A word's hash is BLAKE2b-64 of its UTF-8. An n-gram's hash is SplitMix64 of two hashes: that of the
n-gram before its last word, and that of the last word. The n-gram of no words has the hash 0.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from workers.metrics import ngrams
from workers.metrics.ngrams import Ints
from workers.metrics.references import PreparedReferences
from workers.metrics.tokens import Tokenizer

Hashes = NDArray[np.uint64]

START: Hashes = np.zeros(1, np.uint64)  # the hash of the n-gram of no words
_WORD_BYTES = 8
_STEP, _FIRST, _SECOND = (
    np.uint64(constant) for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@dataclass(frozen=True, eq=False)
class DocumentFrequencies:
    """Document frequencies: the number of images, of `images`, in which each n-gram occurs. N-grams
    of one image are left out: they weigh as much as n-grams of none.
    """

    tokenizer: Tokenizer
    images: int
    keys: Ints  # hashes as signed numbers, sorted
    counts: Ints

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that scores depend on."""
        found = hashlib.sha256(f"{self.tokenizer} {self.images}\n".encode())
        for values in (self.keys, self.counts):
            found.update(values.astype("<i8").tobytes())
        return found.hexdigest()

    def of(self, hashes: Hashes) -> Ints:
        """The frequency of each n-gram, which is at least 1."""
        places, known = ngrams.find_places(self.keys, hashes.view(np.int64))
        found = np.ones(len(hashes), np.int64)
        found[known] = self.counts[places[known]]
        return found


def collect_frequencies(references: PreparedReferences) -> DocumentFrequencies:
    levels = references.levels
    hashes = hash_levels(hash_words(references.words), [level.keys for level in levels])
    counts = [np.bincount(level.ngrams, minlength=len(level.keys)) for level in levels]
    keys, frequencies = np.concatenate(hashes).view(np.int64), np.concatenate(counts)
    several = np.flatnonzero(frequencies > 1)
    order = several[np.argsort(keys[several])]
    return DocumentFrequencies(
        references.tokenizer, references.images, keys[order], frequencies[order]
    )


def hash_words(words: Sequence[str]) -> Hashes:
    digests = (
        hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=_WORD_BYTES).digest()
        for word in words
    )
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def hash_levels(words: Hashes, keys: Sequence[Ints]) -> list[Hashes]:
    """The hashes of n-grams of 1, 2, … words, which are given by their keys."""
    found = [START]
    for each in keys:
        found.append(extend_hashes(found[-1], words, each))
    return found[1:]


def extend_hashes(before: Hashes, words: Hashes, keys: Ints) -> Hashes:
    """The hashes of n-grams that are one word longer than those with the hashes `before`."""
    shorter, last = ngrams.split_pairs(keys)
    mixed = before[shorter] * _STEP + words[last]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))
