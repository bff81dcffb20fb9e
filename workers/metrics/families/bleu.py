"""BLEU-1 … BLEU-4 as pycocoevalcap computes them, with the counts that they sum up."""

import math

import numpy as np

from workers.metrics import ngrams
from workers.metrics.family import FamilyMeasures, Floats, ScoringInput, Statistics
from workers.metrics.ngrams import LONGEST, Ints

NAMES = ("bleu_1", "bleu_2", "bleu_3", "bleu_4")
SMALL, TINY = 1e-9, 1e-15  # the package's: they prevent division by zero and keep 0 / 0 near 0
_HALF = 32  # bits for a length; a distance is above them

assert len(NAMES) == LONGEST


def measure(task: ScoringInput) -> FamilyMeasures:
    most = [level.most for level in task.references.levels]
    matches = np.concatenate([_matches(task, block, most) for block in task.blocks()])
    lengths = task.encoded.word_counts
    statistics = {
        "length": lengths.astype(np.float64),
        "reference_length": _closest(task, lengths).astype(np.float64),
        "ngrams": np.maximum(0.0, lengths[:, None] - np.arange(LONGEST)),
        "matches": matches,
    }
    columns = zip(*_captions(statistics), strict=True)
    return FamilyMeasures(
        captions={name: np.array(kept) for name, kept in zip(NAMES, columns, strict=True)},
        statistics=statistics,
    )


def corpus(statistics: Statistics) -> dict[str, float]:
    """Scores from counts (captions …): lengths, ngrams (…, 4) and matches (…, 4) are summed."""
    ngram_counts, matches = (
        statistics[name].sum(axis=0).tolist() for name in ("ngrams", "matches")
    )
    length, wanted = (float(statistics[name].sum()) for name in ("length", "reference_length"))
    return dict(zip(NAMES, _scores(length, wanted, ngram_counts, matches), strict=True))


def _matches(task: ScoringInput, block: slice, most: list[Ints]) -> Floats:
    """Count matches by caption, at most as many as in the reference that has most of them."""
    rows = task.rows[block]
    found = np.empty((len(rows), LONGEST))
    for place, (own, level) in enumerate(
        zip(task.occurrences(block), task.references.levels, strict=True)
    ):
        held, there = ngrams.find_held(level, rows[own.captions], own.ngrams)
        clipped = np.minimum(own.counts[there], most[place][held[there]])
        found[:, place] = np.bincount(own.captions[there], clipped, len(rows))
    return found


def _closest(task: ScoringInput, lengths: Ints) -> Ints:
    """The reference length nearest to each caption's; if two are equally near, the smaller."""
    begins, references = task.pairs(slice(0, len(lengths)))
    wanted = task.references.word_counts[references]
    own = np.repeat(lengths, np.diff(begins, append=len(references)))
    nearest = np.minimum.reduceat((np.abs(wanted - own) << _HALF) | wanted, begins)
    return nearest & ((1 << _HALF) - 1)


def _captions(statistics: Statistics) -> list[list[float]]:
    names = ("length", "reference_length", "ngrams", "matches")
    rows = zip(*(statistics[name].tolist() for name in names), strict=True)
    return [_scores(*row) for row in rows]


def _scores(
    length: float, wanted: float, ngram_counts: list[float], matches: list[float]
) -> list[float]:
    """The scores, by the package's order of operations and power function: all digits are equal."""
    ratio = (length + TINY) / (wanted + SMALL)
    brevity = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    product, scores = 1.0, []
    for place in range(LONGEST):
        product *= (matches[place] + TINY) / (ngram_counts[place] + SMALL)
        scores.append(product ** (1.0 / (place + 1)) * brevity)
    return scores
