"""CIDEr-D and CIDEr: tf-idf vectors of a caption's n-grams, compared with those of its references.

CIDEr-D is pycocoevalcap's: counts are clipped to the reference's, and a difference in length has a
penalty. CIDEr itself is the plain cosine, as its authors' own code computes it: no clipping, no
penalty, also times ten, and no stemming (which their paper has). By default, document frequencies
are those of the whole split. A task may ask for those of the scored images only, of other images
that are among the references for this, or of a corpus that is not present. A split of one image
always gives 0, because the logarithm of the number of images is 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed
from workers.metrics import frequencies, ngrams
from workers.metrics.family import FamilyMeasures, Floats, IdfImages, ScoringInput
from workers.metrics.frequencies import DocumentFrequencies, Hashes
from workers.metrics.ngrams import Ints, NgramLevel, NgramOccurrences
from workers.metrics.references import PreparedReferences

_SIGMA = 6.0
SCALE = 10.0


@dataclass(frozen=True)
class _TfIdfLevel:
    """A level of n-grams with their inverse document frequencies and its references' norms."""

    level: NgramLevel
    idf: Floats
    unseen: float  # the idf of an n-gram that no image holds
    norms: Floats

    def norms_of(self, found: NgramOccurrences, own: Floats, captions: int) -> Floats:
        """Norms of captions' tf-idf vectors; `own` is the idf of n-grams that no reference holds.
        Those of them that weigh as much as the unseen are counted before they are weighed, because
        whole numbers have the same sum in every order, and so in every part of a set. The others
        are summed in a fixed order.
        """
        weights = np.concatenate([self.idf, own])[found.ngrams]
        squares = (found.counts * weights) ** 2
        held = found.ngrams < len(self.idf)
        unseen = ~held & (weights == self.unseen)
        elsewhere = np.flatnonzero(~held & ~unseen)
        elsewhere = elsewhere[np.lexsort((squares[elsewhere], found.captions[elsewhere]))]
        known = np.bincount(found.captions[held], squares[held], captions)
        others = np.bincount(found.captions[elsewhere], squares[elsewhere], captions)
        counted = np.bincount(found.captions[unseen], found.counts[unseen] ** 2, captions)
        return np.sqrt(known + others + counted * self.unseen**2)


def recipe(task: ScoringInput) -> str:
    """Source of the document frequencies, and over how many images they are counted."""
    if isinstance(task.idf, DocumentFrequencies):
        return f"df:given({task.idf.digest[:12]}, n={task.idf.images})"
    names = {"dataset": "corpus", "subset": "subset"}
    name = "given" if isinstance(task.idf, IdfImages) else names[task.idf]
    return f"df:{name}(n={_counted(task).sum()})"


def _counted(task: ScoringInput) -> NDArray[np.bool_]:
    if isinstance(task.idf, IdfImages):
        return task.idf.images
    chosen = np.full(task.references.images, task.idf == "dataset")
    chosen[task.rows] = True
    return chosen


def _measure(task: ScoringInput, name: str, *, defended: bool) -> FamilyMeasures:
    given = _given(task)
    weighted = _weigh(task, given)
    values = np.concatenate(
        [_scores(task, block, weighted, given, defended=defended) for block in task.blocks()]
    )
    return FamilyMeasures.of_scores(name, values)


def _weigh(task: ScoringInput, given: "_CorpusFrequencies | None") -> list[_TfIdfLevel]:
    counted = _counted(task)
    unseen = float(np.log(given.frequencies.images if given else counted.sum()))
    held = given.held if given else _count_images(task.references, counted)
    weighted = []
    for level, images in zip(task.references.levels, held, strict=True):
        idf = unseen - np.log(np.maximum(images, 1))
        weights = level.counts * np.repeat(idf[level.ngrams], np.diff(level.starts))
        squares = np.bincount(level.owners, weights**2, len(task.references.word_counts))
        weighted.append(_TfIdfLevel(level, idf, unseen, np.sqrt(squares)))
    return weighted


def _count_images(references: PreparedReferences, chosen: NDArray[np.bool_]) -> Iterator[Ints]:
    """Count the images, of those chosen, whose references hold each n-gram, length by length."""
    for level in references.levels:
        yield np.bincount(level.ngrams[chosen[level.images]], minlength=len(level.keys))


@dataclass(frozen=True)
class _CorpusFrequencies:
    """Frequencies of another corpus; hashes of words by number, of n-grams by length."""

    frequencies: DocumentFrequencies
    words: Hashes
    levels: Sequence[Hashes]

    @property
    def held(self) -> Iterator[Ints]:
        return map(self.frequencies.of, self.levels)

    def own(
        self, occurrences: Iterator[NgramOccurrences]
    ) -> Iterator[tuple[NgramOccurrences, Ints]]:
        """Occurrences, with the document frequencies of n-grams that no reference holds."""
        shorter = frequencies.START
        for found, level in zip(occurrences, self.levels, strict=True):
            new = frequencies.extend_hashes(shorter, self.words, found.new)
            yield found, self.frequencies.of(new)
            shorter = np.concatenate([level, new])


def _given(task: ScoringInput) -> _CorpusFrequencies | None:
    found, references = task.idf, task.references
    if not isinstance(found, DocumentFrequencies):
        return None
    if found.tokenizer != references.tokenizer:
        raise MetricFailed(
            f"expected references of the tokenizer that document frequencies were counted with, "
            f"{found.tokenizer!r}, found {references.tokenizer!r}"
        )
    words = frequencies.hash_words(task.words)
    levels = frequencies.hash_levels(words, [level.keys for level in references.levels])
    return _CorpusFrequencies(found, words, levels)


def _scores(
    task: ScoringInput,
    block: slice,
    weighted: Sequence[_TfIdfLevel],
    given: _CorpusFrequencies | None,
    *,
    defended: bool,
) -> Floats:
    references, rows = task.references, task.rows[block]
    lengths = task.encoded.word_counts[block]
    total = np.zeros(len(rows))
    occurrences = task.occurrences(block)
    # Without another corpus, n-grams that no reference holds weigh as much as those of one image.
    once = ((each, np.ones(len(each.new), np.int64)) for each in occurrences)
    of_all = given.own(occurrences) if given else once
    for each, (found, held) in zip(weighted, of_all, strict=True):
        norms = each.norms_of(found, each.unseen - np.log(held), len(rows))
        captions, owners, products = _products(each, found, rows, defended=defended)
        together = norms[captions] * each.norms[owners]
        values = np.divide(products, together, out=np.zeros_like(products), where=products > 0)
        if defended:
            values *= compute_length_penalties(lengths[captions], references.word_counts[owners])
        total += np.bincount(captions, values, len(rows))
    wanted = references.offsets[rows + 1] - references.offsets[rows]
    scores: Floats = total / len(weighted) / wanted * SCALE
    return scores


def _products(
    each: _TfIdfLevel, found: NgramOccurrences, rows: Ints, *, defended: bool
) -> tuple[Ints, NDArray[np.integer[Any]], Floats]:
    """Captions, references, and what an n-gram that both hold adds to their dot product."""
    level = each.level
    places, there = ngrams.find_held(level, rows[found.captions], found.ngrams)
    places = places[there]
    sizes = level.starts[places + 1] - level.starts[places]
    entries = ngrams.spread_runs(level.starts[places], sizes)
    own = np.repeat(found.counts[there], sizes)
    theirs = level.counts[entries].astype(np.int64)
    idf = np.repeat(each.idf[found.ngrams[there]], sizes)
    if defended:
        own = np.minimum(own, theirs)
    return np.repeat(found.captions[there], sizes), level.owners[entries], own * theirs * idf**2


def compute_length_penalties(lengths: Ints, wanted: Ints) -> Floats:
    """Factors for differences in length. The length that counts is the number of bigrams."""
    difference = np.maximum(lengths - 1, 0) - np.maximum(wanted - 1, 0)
    return np.exp(-(difference**2) / (2 * _SIGMA**2))


measure_d = partial(_measure, name="cider_d", defended=True)
measure = partial(_measure, name="cider", defended=False)
