"""METEOR 1.5 (English, normalised) by its own jar, in a child process (`coco_java.py`)."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from service.contract import limits
from service.contract.errors import MetricFailed
from workers.metrics.family import FamilyMeasures, ScoringInput, Statistics
from workers.metrics.java.jvm import Jvm
from workers.progress import Progress

# The jar's values for English, task `rank`: weights of exact, stem, synonym and paraphrase matches,
# and the share of content words against function words.
_WEIGHTS = (1.0, 0.6, 0.8, 0.6)
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75

_BATCH = 200  # captions: a tenth of a second, unless they are very long
_AT_ONCE = 200_000  # matches in a batch: up to 15 s, and an answer has to come within 120
_FEW = 1 << 15  # characters of a caption by those of its references: matches are not counted
_WORD = re.compile(r"\w+|[^\w\s]")

Item = tuple[str, Sequence[str]]  # a caption and its references


def expect(jvm: Jvm) -> None:
    """Read METEOR's table while captions are tokenised, which saves some ten seconds."""
    jvm.call("meteor_table", [None])


def measure(task: ScoringInput) -> FamilyMeasures:
    answers: list[tuple[float, list[float]]] = []
    for items in _batches(task):
        answers += task.jvm.call("meteor", items, progress=_further(task, len(answers)))
    table = np.array([statistics for _, statistics in answers], np.float64)
    return FamilyMeasures(
        captions={"meteor": np.array([score for score, _ in answers], np.float64)},
        statistics={
            "lengths": table[:, :4],  # caption, reference, function words of each
            # by stage: content words of caption and reference, then function words of each
            "matches": table[:, 4:20].reshape(-1, len(_WEIGHTS), 4),
            "chunks": table[:, 20],  # 0 where caption and reference match word by word
            "matched_words": table[:, 21:],
        },
    )


def _batches(task: ScoringInput) -> Iterator[list[Item]]:
    """All captions with their references, so many at once that an answer comes in time."""
    batch: list[Item] = []
    left = _AT_ONCE
    for place, caption in enumerate(task.captions):
        item = caption, task.references_of(place)
        found = _matches(*item)
        if found > limits.MATCHES:
            raise MetricFailed(
                f"meteor: caption {place} and its references have {found:,} pairs of equal words, "
                f"expected at most {limits.MATCHES:,}; score it without meteor, or shorten it"
            )
        if len(batch) == _BATCH or (batch and found > left):
            yield batch
            batch, left = [], _AT_ONCE
        batch.append(item)
        left -= found
    if batch:
        yield batch


def _matches(caption: str, references: Sequence[str]) -> int:
    """Count pairs of equal words: METEOR's time grows. Those of short captions are not counted."""
    if len(caption) * sum(map(len, references)) < _FEW:
        return 0
    own = Counter(_WORD.findall(caption.lower()))
    return sum(own[word] for text in references for word in _WORD.findall(text.lower()))


def _further(task: ScoringInput, before: int) -> Progress:
    """Progress of all captions, of which so many are scored before this batch."""
    return lambda done, _: task.progress(before + done, len(task.captions))


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
