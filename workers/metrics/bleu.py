"""BLEU-1 … BLEU-4 by pycocoevalcap's scorer, with the counts that it sums up."""

import math
from typing import Any

import numpy as np
from pycocoevalcap.bleu.bleu_scorer import BleuScorer

from workers.metrics.family import Measured, Statistics, Task

NAMES = ("bleu_1", "bleu_2", "bleu_3", "bleu_4")
_N = len(NAMES)
_SMALL, _TINY = 1e-9, 1e-15  # the package's own: no division by zero, and 0 / 0 stays next to 0


def measure(task: Task) -> Measured:
    scores: list[list[float]] = [[] for _ in NAMES]
    counts: list[tuple[float, ...]] = []
    for block in task.blocks():
        scorer = BleuScorer(n=_N)
        for place in block:
            scorer += (task.captions[place], task.references_of(place))
        _, by_caption = scorer.compute_score(option="closest")
        for kept, found in zip(scores, by_caption, strict=True):
            kept.extend(found)
        counts += [_counts(cooked) for cooked in scorer.ctest]
    table = np.array(counts, np.float64)
    return Measured(
        captions={name: np.array(kept) for name, kept in zip(NAMES, scores, strict=True)},
        statistics={
            "length": table[:, 0],
            "reference_length": table[:, 1],
            "ngrams": table[:, 2 : 2 + _N],
            "matches": table[:, 2 + _N :],
        },
    )


def _counts(cooked: dict[str, Any]) -> tuple[float, ...]:
    length = cooked["testlen"]
    closest = min((abs(given - length), given) for given in cooked["reflen"])[1]
    return (length, closest, *cooked["guess"], *cooked["correct"])


def corpus(statistics: Statistics) -> dict[str, float]:
    """Counts (captions …) -> scores: lengths, ngrams (…, 4) and matches (…, 4) added up. In the
    package's order of operations, so that the last digits agree.
    """
    ngrams, matches = (statistics[name].sum(axis=0).tolist() for name in ("ngrams", "matches"))
    length, wanted = (float(statistics[name].sum()) for name in ("length", "reference_length"))
    ratio = (length + _TINY) / (wanted + _SMALL)
    brevity = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    product, scores = 1.0, {}
    for place, name in enumerate(NAMES):
        product *= (matches[place] + _TINY) / (ngrams[place] + _SMALL)
        scores[name] = product ** (1.0 / (place + 1)) * brevity
    return scores
