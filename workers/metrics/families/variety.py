"""What a captioner says, without looking at references: how long, how varied, how much by rote."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.metrics import ngrams
from workers.metrics.ngrams import LONGEST, Ints, Numbers

Keys = NDArray[np.bytes_]
_KEY_BYTES = 16


@dataclass(frozen=True)
class Variety:
    """Tuples: of 1-, 2-, 3-, 4-grams. Entropies are in bits."""

    lengths: Ints  # of each caption
    known: NDArray[np.bool_] | None  # which captions are, to the letter, training captions
    vocabulary: int
    distinct: tuple[int, ...]
    distinct_share: tuple[float, ...]  # of all that occur
    entropy: tuple[float, ...]

    @property
    def mean_length(self) -> float:
        return float(self.lengths.mean())

    @property
    def in_training(self) -> float | None:
        return None if self.known is None else float(self.known.mean())


def measure(captions: Sequence[str], training: Keys | None = None) -> Variety:
    """Captions as tokens joined by blanks, `training` those of captions by the same tokeniser."""
    encoded = ngrams.encode(captions, Numbers())
    counts = [np.bincount(found) for found in _numbered(encoded.words, encoded.word_counts)]
    known = None if training is None else np.isin(_keys(captions), training)
    return Variety(
        lengths=encoded.word_counts,
        known=known,
        vocabulary=len(counts[0]),
        distinct=tuple(len(each) for each in counts),
        distinct_share=tuple(len(each) / max(1, int(each.sum())) for each in counts),
        entropy=tuple(map(_entropy, counts)),
    )


def keys(captions: Iterable[str]) -> Keys:
    """Different captions, each by a key of 16 bytes, in the keys' order."""
    return np.unique(_keys(captions))


def _keys(captions: Iterable[str]) -> Keys:
    found = b"".join(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()
        for text in captions
    )
    return np.frombuffer(found, f"S{_KEY_BYTES}")


def _numbered(words: Ints, word_counts: Ints) -> list[Ints]:
    """Of each length, the number of the n-gram at every place."""
    found: list[Ints] = []

    def number(_: int, keys: Ints) -> tuple[Ints, Ints]:
        table, numbers = np.unique(keys, return_inverse=True)
        found.append(numbers)
        return numbers, table

    assert sum(1 for _ in ngrams.count(words, word_counts, number)) == LONGEST
    return found


def _entropy(counts: Ints) -> float:
    share = counts / max(1, int(counts.sum()))
    return float(-(share * np.log2(share)).sum())
