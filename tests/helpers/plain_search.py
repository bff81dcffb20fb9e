"""Greedy search by its definition: each time anew, of a table of logits."""

from collections.abc import Callable, Sequence

import numpy as np


def greedy(
    logits: Callable[[list[int]], Sequence[float]],
    end: int,
    *,
    least: int,
    most: int,
    never: Sequence[int] = (),
) -> list[int]:
    """The words of a caption; `logits` are those of the next word after these."""
    words: list[int] = []
    while len(words) < most:
        row = np.array(logits(words), np.float64)
        row[[*never, *([end] if len(words) < least else [])]] = -np.inf
        if row.argmax() == end:
            break
        words.append(int(row.argmax()))
    return words
