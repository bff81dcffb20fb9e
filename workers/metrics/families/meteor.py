"""METEOR 1.5 (English, normalised) by its own jar, in a child process (`coco_java.py`)."""

import math

import numpy as np

from workers.metrics.family import Measured, Statistics, Task
from workers.metrics.java.jvm import Jvm

# The jar's values for English, task `rank`: weights of exact, stem, synonym and paraphrase matches,
# and the share of content words against function words.
_WEIGHTS = (1.0, 0.6, 0.8, 0.6)
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75

_BATCH = 200  # captions: a tenth of a second, unless they are very long


def expect(jvm: Jvm) -> None:
    """Read METEOR's table while captions are tokenised, which saves some ten seconds."""
    jvm.call("meteor_table", [None])


def measure(task: Task) -> Measured:
    items = [(caption, task.references_of(place)) for place, caption in enumerate(task.captions)]
    answers = task.jvm.call("meteor", items, batch=_BATCH, progress=task.progress)
    table = np.array([statistics for _, statistics in answers], np.float64)
    return Measured(
        captions={"meteor": np.array([score for score, _ in answers], np.float64)},
        statistics={
            "lengths": table[:, :4],  # caption, reference, function words of each
            # by stage: content words of caption and reference, then function words of each
            "matches": table[:, 4:20].reshape(-1, len(_WEIGHTS), 4),
            "chunks": table[:, 20],  # 0 where caption and reference match word by word
            "matched_words": table[:, 21:],
        },
    )


def corpus(statistics: Statistics) -> dict[str, float]:
    """The score of all captions, in the jar's order of operations, so that the last digits agree;
    they do on all 36 systems of `where-image2`. Java's power and the C library's differ in the last
    bit for 1 sum in 1,000, Java's and numpy's for more.
    """
    length, wanted, functions, wanted_functions = statistics["lengths"].sum(axis=0).tolist()
    matches = statistics["matches"].sum(axis=0).tolist()
    precision = _ratio(_weighted([row[0::2] for row in matches]), length, functions)
    recall = _ratio(_weighted([row[1::2] for row in matches]), wanted, wanted_functions)
    matched = float(statistics["matched_words"].sum()) / 2
    if not (precision and recall and matched):
        return {"meteor": 0.0}
    mean = 1.0 / ((1.0 - _ALPHA) / precision + _ALPHA / recall)
    penalty = _GAMMA * math.pow(float(statistics["chunks"].sum()) / matched, _BETA)
    return {"meteor": mean * (1.0 - penalty)}


def _weighted(matches: list[list[float]]) -> float:
    """The sum of (content, function) matches by stage: content words first, as the jar adds."""
    total = 0.0
    for weight, (content, _) in zip(_WEIGHTS, matches, strict=True):
        total += content * weight * _DELTA
    for weight, (_, function) in zip(_WEIGHTS, matches, strict=True):
        total += function * weight * (1.0 - _DELTA)
    return total


def _ratio(matched: float, words: float, functions: float) -> float:
    length = _DELTA * (words - functions) + (1.0 - _DELTA) * functions
    return matched / length if length else 0.0
