"""What a captioner says, without looking at references: how long, how varied, how much by rote."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from workers.metrics import ngrams
from workers.metrics.ngrams import LONGEST, Ints, Numbers


@dataclass(frozen=True)
class Variety:
    """Tuples: of 1-, 2-, 3-, 4-grams. Entropies are in bits."""

    mean_length: float
    vocabulary: int
    distinct: tuple[int, ...]
    distinct_share: tuple[float, ...]  # of all that occur
    entropy: tuple[float, ...]
    in_training: float | None  # the share of captions that are a training caption to the letter


def measure(captions: Sequence[str], training: Iterable[str] | None = None) -> Variety:
    """Captions and training captions as tokens joined by blanks, by the same tokeniser."""
    encoded = ngrams.encode(captions, Numbers())
    counts = [np.bincount(found) for found in _numbered(encoded.words, encoded.word_counts)]
    known = None if training is None else set(training)
    return Variety(
        mean_length=float(encoded.word_counts.mean()),
        vocabulary=len(counts[0]),
        distinct=tuple(len(each) for each in counts),
        distinct_share=tuple(len(each) / max(1, int(each.sum())) for each in counts),
        entropy=tuple(map(_entropy, counts)),
        in_training=None
        if known is None
        else sum(text in known for text in captions) / len(captions),
    )


def _numbered(words: Ints, word_counts: Ints) -> list[Ints]:
    """Of each length, the number of the n-gram at every place."""
    found: list[Ints] = []

    def number(_: int, keys: Ints) -> Ints:
        found.append(np.unique(keys, return_inverse=True)[1])
        return found[-1]

    assert sum(1 for _ in ngrams.count(words, word_counts, number)) == LONGEST
    return found


def _entropy(counts: Ints) -> float:
    share = counts / max(1, int(counts.sum()))
    return float(-(share * np.log2(share)).sum())
