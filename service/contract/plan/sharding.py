"""How tasks on many images are cut into parts, so that no bit of a result depends on it."""

import math
from collections.abc import Mapping
from typing import Any

from service.contract.plan.tasks import Blob, Task

# How many images are computed at once. The last bits of a matrix product depend on its size, so the
# block is part of a result: tasks are sharded in whole blocks, and planning and workers both use
# this number. Images decoded in another order than the split's are in other blocks: their order is
# an input of their captions.
BLOCK_IMAGES = 128
USUAL_SEARCH = 3 * 50  # a beam of 3, 50 words
LONG_SEARCH = 1000  # above this, captions need not end early
MAX_PARTS = 500  # of one task


def decoding_block(beam: int, max_words: int) -> int:
    """Images of a block; fewer for a longer search, so that all blocks take about the same time."""
    return max(1, min(BLOCK_IMAGES, BLOCK_IMAGES * USUAL_SEARCH // (beam * max_words)))


def sharded(
    kind: str,
    inputs: Mapping[str, Blob | Task],
    parameters: Mapping[str, Any],
    images: int,
    block: int,
    wanted: int,
) -> Task:
    """One task for all images, joined from parts of about `wanted` images where there are more.

    Parts are whole blocks, and larger than `wanted` where there would be more than MAX_PARTS.
    """
    size = block * max(1, wanted // block, math.ceil(images / (block * MAX_PARTS)))
    starts = range(0, images, size)
    parts = tuple(
        Task(kind, inputs, {**parameters, "images": [start, min(start + size, images)]})
        for start in starts
    )
    return Task(kind, inputs, parameters, parts if len(parts) > 1 else ())
