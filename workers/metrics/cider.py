"""CIDEr-D and CIDEr: tf-idf vectors of a caption's n-grams beside those of its references.

CIDEr-D is pycocoevalcap's: counts clipped to the reference's, a penalty on the difference in
length. CIDEr proper is the plain cosine, as its authors' own code computes it: no clipping, no
penalty, times ten as well, and no stemming (which their paper has). Document frequencies are those
of the whole split, unless they are asked for from the images that are scored alone, or from others
that stand among the references for this. A split of one image gives 0 by construction: the
logarithm of the number of images is 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.metrics import ngrams
from workers.metrics.family import Counted, Floats, Measured, Statistics, Task
from workers.metrics.ngrams import Ints, Level, Occurrences
from workers.metrics.references import References

_SIGMA = 6.0
SCALE = 10.0


@dataclass(frozen=True)
class _Weighted:
    """A level of n-grams with their inverse document frequencies and its references' norms."""

    level: Level
    idf: Floats
    unseen: float  # the idf of an n-gram that no reference holds
    norms: Floats

    def norms_of(self, found: Occurrences, captions: int) -> Floats:
        """Of captions. What no reference holds is counted before it is weighed: whole numbers add
        up to the same in every order, and so in every part of a set.
        """
        known = found.ngrams < len(self.idf)
        squares = (found.counts[known] * self.idf[found.ngrams[known]]) ** 2
        seen = np.bincount(found.captions[known], squares, captions)
        unseen = np.bincount(found.captions[~known], found.counts[~known] ** 2, captions)
        return np.sqrt(seen + unseen * self.unseen**2)


def recipe(task: Task) -> str:
    """Where document frequencies come from, and over how many images they are counted."""
    names = {"dataset": "corpus", "subset": "subset"}
    name = "given" if isinstance(task.idf, Counted) else names[task.idf]
    return f"df:{name}(n={_counted(task).sum()})"


def _counted(task: Task) -> NDArray[np.bool_]:
    if isinstance(task.idf, Counted):
        return task.idf.images
    chosen = np.full(task.references.images, task.idf == "dataset")
    chosen[task.rows] = True
    return chosen


def _measure(task: Task, name: str, *, defended: bool) -> Measured:
    weighted = _weigh(task)
    values = np.concatenate(
        [_scores(task, block, weighted, defended=defended) for block in task.blocks()]
    )
    return Measured({name: values}, {name: values})


def _corpus(statistics: Statistics, name: str) -> dict[str, float]:
    return {name: float(np.mean(statistics[name]))}


def _weigh(task: Task) -> list[_Weighted]:
    chosen = _counted(task)
    unseen = float(np.log(chosen.sum()))
    return [
        _weigh_level(task.references, level, chosen, unseen) for level in task.references.levels
    ]


def _weigh_level(
    references: References, level: Level, chosen: NDArray[np.bool_], unseen: float
) -> _Weighted:
    numbers = level.ngrams
    frequencies = np.bincount(numbers[chosen[level.images]], minlength=len(level.keys))
    idf = unseen - np.log(np.maximum(frequencies, 1))
    weights = level.counts * np.repeat(idf[numbers], np.diff(level.starts))
    squares = np.bincount(level.owners, weights**2, len(references.word_counts))
    return _Weighted(level, idf, unseen, np.sqrt(squares))


def _scores(task: Task, block: slice, weighted: Sequence[_Weighted], *, defended: bool) -> Floats:
    references, rows = task.references, task.rows[block]
    lengths = task.encoded.word_counts[block]
    total = np.zeros(len(rows))
    for each, found in zip(weighted, task.occurrences(block), strict=True):
        norms = each.norms_of(found, len(rows))
        captions, owners, products = _products(each, found, rows, defended=defended)
        together = norms[captions] * each.norms[owners]
        values = np.divide(products, together, out=np.zeros_like(products), where=products > 0)
        if defended:
            values *= penalties(lengths[captions], references.word_counts[owners])
        total += np.bincount(captions, values, len(rows))
    wanted = references.offsets[rows + 1] - references.offsets[rows]
    scores: Floats = total / len(weighted) / wanted * SCALE
    return scores


def _products(
    each: _Weighted, found: Occurrences, rows: Ints, *, defended: bool
) -> tuple[Ints, NDArray[np.integer[Any]], Floats]:
    """Captions, references, and what an n-gram that both hold adds to their dot product."""
    level = each.level
    places, there = ngrams.hold(level, rows[found.captions], found.ngrams)
    places = places[there]
    sizes = level.starts[places + 1] - level.starts[places]
    entries = ngrams.spread(level.starts[places], sizes)
    own = np.repeat(found.counts[there], sizes)
    theirs = level.counts[entries].astype(np.int64)
    idf = np.repeat(each.idf[found.ngrams[there]], sizes)
    if defended:
        own = np.minimum(own, theirs)
    return np.repeat(found.captions[there], sizes), level.owners[entries], own * theirs * idf**2


def penalties(lengths: Ints, wanted: Ints) -> Floats:
    """The length that counts is the number of bigrams."""
    difference = np.maximum(lengths - 1, 0) - np.maximum(wanted - 1, 0)
    return np.exp(-(difference**2) / (2 * _SIGMA**2))


measure_d = partial(_measure, name="cider_d", defended=True)
corpus_d = partial(_corpus, name="cider_d")
measure = partial(_measure, name="cider", defended=False)
corpus = partial(_corpus, name="cider")
