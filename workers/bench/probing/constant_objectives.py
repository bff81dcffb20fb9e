"""BLEU, CIDEr-D and ROUGE-L of one sentence as the caption of every image, and their bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.metrics import ngrams
from workers.metrics.families import bleu, cider, rouge_l
from workers.metrics.family import Floats, ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.ngrams import LONGEST, Ints, NgramLevel, NgramOccurrences, WordNumbers
from workers.metrics.references import PreparedReferences

SLACK = 1 + 1e-9  # factor of a bound: sums in another order differ by less


class NumberedSentences:
    """Sentences (tokens) as numbers; words that references lack get the numbers after theirs."""

    def __init__(self, texts: Sequence[str], references: PreparedReferences) -> None:
        self.texts = texts
        self._encoded = ngrams.number_captions(texts, WordNumbers(references.numbers))
        self._number = ngrams.number_by_levels(references.levels)
        self.token_counts = self._encoded.token_counts
        self.word_counts = self._encoded.word_counts
        self._first_tokens = ngrams.compute_starts(self.token_counts)
        self._first_words = ngrams.compute_starts(self.word_counts)

    def tokens(self, place: int) -> Ints:
        first = self._first_tokens[place]
        return self._encoded.tokens[first : first + self.token_counts[place]]

    def ngrams(self, places: Ints) -> list[NgramOccurrences]:
        """The n-grams of 1 to 4 words; the captions in them are numbered as in `places`."""
        counts = self.word_counts[places]
        words = self._encoded.words[ngrams.spread_runs(self._first_words[places], counts)]
        return list(ngrams.count_ngrams(words, counts, self._number))

    def single_tokens(self, places: Ints) -> NgramOccurrences:
        counts = self.token_counts[places]
        tokens = self._encoded.tokens[ngrams.spread_runs(self._first_tokens[places], counts)]
        return next(ngrams.count_ngrams(tokens, counts, _as_they_are))


class NgramStairs:
    """The entries that an n-gram has in the references, with the count of each. A sentence that
    holds the n-gram c times earns min(c, count) times each entry's value: for every n-gram, a
    staircase.
    """

    def __init__(self, numbers: Ints, counts: Ints, size: int) -> None:
        self._size = size
        self._highest = np.zeros(size + 1, np.int64)  # the last one is for what no reference holds
        np.maximum.at(self._highest, numbers, counts)
        self._begins = ngrams.compute_starts(self._highest + 1)
        self._entries = np.repeat(np.arange(len(counts)), counts)
        self._places = ngrams.spread_runs(self._begins[numbers] + 1, counts)
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

    def climb(self, heights: Floats, found: NgramOccurrences, sentences: int) -> Floats:
        """The sum that each sentence earns."""
        numbers = np.minimum(found.ngrams, self._size)
        steps = np.minimum(found.counts, self._highest[numbers])
        earned = heights[self._begins[numbers] + steps]
        totals: Floats = np.bincount(found.captions, earned, sentences).astype(np.float64)
        return totals  # bincount of nothing returns whole numbers


def _as_they_are(_: int, keys: Ints) -> tuple[Ints, Ints]:
    return keys, keys[:0]


class ConstantBleu:
    batch = 256

    def __init__(
        self, name: str, sentences: NumberedSentences, references: PreparedReferences
    ) -> None:
        self._name, self._sentences, self._references = name, sentences, references
        self._levels = []
        for level in references.levels:
            stairs = NgramStairs(level.ngrams, level.most, len(level.keys))
            self._levels.append((stairs, stairs.build(np.ones(len(level.held)))))
        self._closest: dict[int, int] = {}

    def bounds(self, places: Ints) -> Floats:
        """The scores (times SLACK), computed with another power function than the metric's own."""
        order = bleu.NAMES.index(self._name) + 1
        found = self._statistics(places)
        inverse = (found["reference_length"] + bleu.SMALL) / (found["length"] + bleu.TINY)
        precisions = (found["matches"] + bleu.TINY) / (found["ngrams"] + bleu.SMALL)
        means = precisions[:, :order].prod(axis=1) ** (1 / order)
        bounds: Floats = means * np.exp(np.minimum(0, 1 - inverse)) * SLACK
        return bounds

    def scores(self, places: Ints) -> list[float]:
        found = self._statistics(places)
        rows = ({name: part[[row]] for name, part in found.items()} for row in range(len(places)))
        return [bleu.corpus(row)[self._name] for row in rows]

    def _statistics(self, places: Ints) -> dict[str, Floats]:
        """Sum over all images, for each sentence, the statistics that the metric needs."""
        images, lengths = self._references.images, self._sentences.word_counts[places]
        matches = np.empty((len(places), LONGEST))
        for place, found in enumerate(self._sentences.ngrams(places)):
            stairs, heights = self._levels[place]
            matches[:, place] = stairs.climb(heights, found, len(places))
        return {
            "length": lengths.astype(np.float64) * images,
            "reference_length": np.array([self._wanted(each) for each in lengths.tolist()], float),
            "ngrams": np.maximum(0.0, lengths[:, None] - np.arange(LONGEST)) * images,
            "matches": matches,
        }

    def _wanted(self, length: int) -> int:
        """The sum over images of the reference length closest to this one."""
        if length not in self._closest:
            theirs = self._references.word_counts
            away = 2 * np.abs(theirs - length) + (
                theirs > length
            )  # if two are as near, the smaller
            nearest = np.minimum.reduceat(away, self._references.offsets[:-1])
            sides = np.where(nearest % 2, 1, -1)
            self._closest[length] = int((length + sides * (nearest // 2)).sum())
        return self._closest[length]


@dataclass(frozen=True)
class _ReferenceWeights:
    """Weights of one length's n-gram entries, without factors that depend on the sentence."""

    stairs: NgramStairs
    owners: NDArray[np.integer[Any]]
    values: Floats
    idf: Floats  # the last one is for an n-gram that no reference holds

    def heights(self, penalties: Floats) -> Floats:
        return self.stairs.build(self.values * penalties[self.owners])

    def cosines(self, heights: Floats, found: NgramOccurrences, sentences: int) -> Floats:
        weights = found.counts * self.idf[np.minimum(found.ngrams, len(self.idf) - 1)]
        norms = np.sqrt(np.bincount(found.captions, weights**2, sentences))
        products = self.stairs.climb(heights, found, sentences)
        return np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)


class ConstantCiderD:
    batch = 1  # the metric itself computes a score, image by image, and few are needed

    def __init__(self, sentences: NumberedSentences, references: PreparedReferences) -> None:
        self._sentences, self._references = sentences, references
        self._levels = [_weigh(references, level) for level in references.levels]
        self._length, self._heights = -1, list[Floats]()

    def bounds(self, places: Ints) -> Floats:
        """The scores (times SLACK), summed in another order than the metric's. This is fastest if
        sentences of equal length are next to each other.
        """
        lengths = self._sentences.word_counts[places]
        bounds = np.zeros(len(places))
        for length in np.unique(lengths).tolist():
            chosen = np.flatnonzero(lengths == length)
            bounds[chosen] = self._sums(length, places[chosen])
        return bounds * SLACK

    def scores(self, places: Ints) -> list[float]:
        images = np.arange(self._references.images)
        texts = [self._sentences.texts[place] for place in places.tolist()]
        tasks = (
            ScoringInput([text] * len(images), images, self._references, Jvm()) for text in texts
        )
        return [float(np.mean(cider.measure_d(task).captions["cider_d"])) for task in tasks]

    def _sums(self, length: int, places: Ints) -> Floats:
        if length != self._length:
            penalties = cider.compute_length_penalties(
                np.array([length]), self._references.word_counts
            )
            self._heights = [level.heights(penalties) for level in self._levels]
            self._length = length
        parts = zip(self._levels, self._heights, self._sentences.ngrams(places), strict=True)
        sums = np.zeros(len(places))
        for level, heights, found in parts:
            sums += level.cosines(heights, found, len(places))
        return sums * (cider.SCALE / len(self._levels) / self._references.images)


def _weigh(references: PreparedReferences, level: NgramLevel) -> _ReferenceWeights:
    unseen = float(np.log(references.images))
    frequencies = np.bincount(level.ngrams, minlength=len(level.keys))
    idf = np.append(unseen - np.log(np.maximum(frequencies, 1)), unseen)
    numbers = np.repeat(level.ngrams, np.diff(level.starts))
    counts = level.counts.astype(np.int64)
    weights = counts * idf[numbers]
    sizes = np.diff(references.offsets)
    shares = np.repeat(1 / sizes, sizes)  # an image counts once, however many references it has
    norms = np.sqrt(np.bincount(level.owners, weights**2, len(shares)))[level.owners]
    values = weights * idf[numbers] * shares[level.owners]
    values = np.divide(values, norms, out=np.zeros_like(values), where=norms > 0)
    return _ReferenceWeights(
        NgramStairs(numbers, counts, len(level.keys)), level.owners, values, idf
    )


class ConstantRougeL:
    batch = 64

    def __init__(self, sentences: NumberedSentences, references: PreparedReferences) -> None:
        self._sentences, self._references = sentences, references
        self._common = ReferenceSubsequences(references)
        self._stairs, shortest = _stairs(references)
        self._found = self._stairs.build(np.ones(len(shortest)))
        self._recalled = self._stairs.build(1 / shortest)

    def bounds(self, places: Ints) -> Floats:
        images, own = self._references.images, self._sentences.token_counts[places]
        tokens = self._sentences.single_tokens(places)
        found, recalled = (
            self._stairs.climb(heights, tokens, len(places)) / images
            for heights in (self._found, self._recalled)
        )
        return (
            rouge_l.compute_f_measure(np.minimum(found / own, 1), np.minimum(recalled, 1)) * SLACK
        )

    def scores(self, places: Ints) -> list[float]:
        return [self._score(self._sentences.tokens(place)) for place in places.tolist()]

    def _score(self, tokens: Ints) -> float:
        common, begins = self._common.lengths(tokens.tolist()), self._references.offsets[:-1]
        precision = np.maximum.reduceat(common, begins) / len(tokens)
        recall = np.maximum.reduceat(common / self._references.token_counts, begins)
        return float(np.mean(rouge_l.compute_f_measure(precision, recall)))


def _stairs(references: PreparedReferences) -> tuple[NgramStairs, Ints]:
    """Stairs by image and token: highest count in one reference; the shortest such reference."""
    sizes = references.token_counts
    owners = np.repeat(np.arange(len(sizes)), sizes)
    held, counts = np.unique(ngrams.pair_numbers(owners, references.tokens), return_counts=True)
    owners, tokens = ngrams.split_pairs(held)
    images = np.repeat(np.arange(references.images), np.diff(references.offsets))[owners]
    order = np.argsort(ngrams.pair_numbers(images, tokens), kind="stable")
    held, first = np.unique(ngrams.pair_numbers(images, tokens)[order], return_index=True)
    most = np.maximum.reduceat(counts[order], first)
    shortest = np.minimum.reduceat(sizes[owners][order], first)
    return NgramStairs(ngrams.split_pairs(held)[1], most, len(references.words)), shortest


_REMEMBERED = 1 << 27  # bytes of bits


class ReferenceSubsequences:
    def __init__(self, references: PreparedReferences) -> None:
        counts = references.token_counts
        widths = counts // 8 + 1  # bytes
        self._begins, self._bytes = ngrams.compute_starts(widths), int(widths.sum())
        bits = ngrams.spread_runs(8 * self._begins, counts)
        order = np.argsort(references.tokens, kind="stable")
        self._bits = bits[order]
        self._bounds = np.searchsorted(
            references.tokens[order], np.arange(len(references.words) + 1)
        ).tolist()
        self._all = self._integer(bits)
        self._where = lru_cache(max(64, _REMEMBERED // self._bytes))(self._token)

    def lengths(self, tokens: Sequence[int]) -> Ints:
        """The length of the longest common subsequence with each reference."""
        fallen = rouge_l.clear_common_bits(map(self._where, tokens), self._all)
        counts = np.bitwise_count(np.frombuffer(fallen.to_bytes(self._bytes, "little"), np.uint8))
        lengths: Ints = np.add.reduceat(counts, self._begins, dtype=np.int64)
        return lengths

    def _token(self, token: int) -> int:
        """The bits of all places where references hold the token; 0 if none holds it."""
        if token >= len(self._bounds) - 1:
            return 0
        return self._integer(self._bits[self._bounds[token] : self._bounds[token + 1]])

    def _integer(self, bits: Ints) -> int:
        values = np.bincount(bits >> 3, 1 << (bits & 7), self._bytes)
        return int.from_bytes(values.astype(np.uint8).tobytes(), "little")
