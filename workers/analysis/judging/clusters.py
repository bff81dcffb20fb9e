"""Which lines of judgements depend on each other: those of one image.

A line that does not name its image is of the image that lines with the same references name, and
else of its own references' image.
"""

from dataclasses import dataclass

import numpy as np

from workers.analysis.judging.scoring import Captions
from workers.files.judgements import Judgements, Pair, Rated
from workers.metrics.ngrams import Ints


@dataclass(frozen=True)
class Clusters:
    """The number of each line's image, which it shares with others."""

    rated: Ints
    pairs: Ints


def clusters(judgements: Judgements, given: Captions) -> Clusters:
    lines: list[Rated | Pair] = [*judgements.rated, *judgements.pairs]
    rows = np.concatenate([given.rows[given.rated], given.rows[given.pairs[:, 0]]]).tolist()
    images: dict[int, str] = {}
    for row, line in zip(rows, lines, strict=True):
        if line.image is not None:
            images.setdefault(row, line.image)
    numbers: dict[str | int, int] = {}
    found = [
        numbers.setdefault(line.image or images.get(row, row), len(numbers))
        for row, line in zip(rows, lines, strict=True)
    ]
    many = len(judgements.rated)
    return Clusters(np.array(found[:many], np.int64), np.array(found[many:], np.int64))
