"""Which images a resample draws. There is one seed for all, so that every metric, and both sides of
a comparison, are judged on the same images.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 1000
TRIALS = 10_000  # of a test: a p of .05 is known to .002
SEED = 0
_CELLS = 1 << 22  # 32 MB of weights at once


def draws(images: int, resamples: int = RESAMPLES, seed: int = SEED) -> Iterator[Floats]:
    """How often each image is drawn, in blocks of (resamples, images), so that not all need to be
    in memory at once. Each row sums to the number of images.
    """
    drawn = _drawn(images, resamples, seed)
    for block in _blocks(images, resamples):
        yield drawn[block].astype(np.float64)


def swaps(images: int, trials: int = TRIALS, seed: int = SEED) -> Iterator[Floats]:
    """Blocks of (trials, images): 1 if the two sides of an image change places, which a coin
    decides.
    """
    random = np.random.default_rng(seed)
    for block in _blocks(images, trials):
        rows = block.stop - block.start
        bits = np.unpackbits(random.integers(0, 256, (rows, -(-images // 8)), dtype=np.uint8), 1)
        yield bits[:, :images].astype(np.float64)


@lru_cache(maxsize=1)
def _drawn(images: int, resamples: int, seed: int) -> NDArray[np.uint8]:
    """Draw images. The counts are kept for the next metric of the same images: 5 MB for 5,000
    images. No image is drawn 256 times.
    """
    random = np.random.default_rng(seed)
    found = np.empty((resamples, images), np.uint8)
    for row in found:
        row[:] = np.bincount(random.integers(0, images, images), minlength=images)
    found.flags.writeable = False
    return found


def _blocks(images: int, rows: int) -> Iterator[slice]:
    most = max(1, _CELLS // images)
    for start in range(0, rows, most):
        yield slice(start, min(start + most, rows))
