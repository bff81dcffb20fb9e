"""Resamples of images. There is one seed for all, so that every metric, and both sides of
a comparison, are judged on the same images.
"""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from service.contract.metrics import draws, families
from workers.metrics import postgen
from workers.metrics.family import FamilyScores, Statistics

Floats = NDArray[np.float64]

RESAMPLES = 1000
TRIALS = 10_000  # of a test: a p of .05 is known to .002
SEED = 0
_CELLS = 1 << 22  # 32 MB of weights at once


def draw_resamples(images: int, resamples: int = RESAMPLES, seed: int = SEED) -> Iterator[Floats]:
    """Yield blocks (resamples, images) of images' counts. Each row sums to the number of images."""
    drawn = _drawn(images, resamples, seed)
    for block in _blocks(images, resamples):
        yield drawn[block].astype(np.float64)


def draw_swaps(images: int, trials: int = TRIALS, seed: int = SEED) -> Iterator[Floats]:
    """Blocks (trials, images): 1 if a coin exchanges the two sides of an image."""
    random = np.random.default_rng(seed)
    for block in _blocks(images, trials):
        rows = block.stop - block.start
        bits = np.unpackbits(random.integers(0, 256, (rows, -(-images // 8)), dtype=np.uint8), 1)
        yield bits[:, :images].astype(np.float64)


@lru_cache(maxsize=1)
def _drawn(images: int, resamples: int, seed: int) -> NDArray[np.uint8]:
    """Draw images; kept for the next metric of the same images (5 MB for 5,000)."""
    random = np.random.default_rng(seed)
    found = np.empty((resamples, images), np.uint8)  # no image is drawn 256 times
    for row in found:
        row[:] = np.bincount(random.integers(0, images, images), minlength=images)
    found.flags.writeable = False
    return found


def _blocks(images: int, rows: int) -> Iterator[slice]:
    most = max(1, _CELLS // images)
    for start in range(0, rows, most):
        yield slice(start, min(start + most, rows))


Corpus = dict[str, Floats]  # by metric, a score for every draw


@dataclass(frozen=True)
class ImageSums:
    """Scores of sums: `table` (images, columns) is summed; `corpus` takes sums and images."""

    table: Floats
    corpus: Callable[[Floats, Floats], Corpus]

    @property
    def images(self) -> int:
        return len(self.table)

    def drawn(self, weights: Floats) -> Corpus:
        """Scores of draws; `weights` (draws, images) says how often each image counts. Differences
        from the first image are summed, so counts stay whole, and what is the same for all images
        is the same in every draw.
        """
        images = weights.sum(axis=1)
        first = self.table[0]
        sums = weights @ (self.table - first) + images[:, None] * first
        return self.corpus(sums, images)


def sum_scores(scores: FamilyScores) -> ImageSums:
    """The sums that make the scores; of families without statistics, those of captions."""
    return sum_statistics(scores.family, scores.statistics or scores.captions)


def sum_statistics(family: str, statistics: Statistics) -> ImageSums:
    flat = [values.reshape(len(values), -1) for values in statistics.values()]
    ends = np.cumsum([values.shape[1] for values in flat])
    shapes = {name: (1, *values.shape[1:]) for name, values in statistics.items()}
    is_counted = families.FAMILIES[family].is_counted
    is_whole = postgen.FAMILY_FUNCTIONS[family].corpus is None

    def corpus(sums: Floats, images: Floats) -> Corpus:
        rows = sums if is_counted else sums / images[:, None]
        parts = dict(zip(shapes, np.split(rows, ends[:-1], axis=1), strict=True))
        if is_whole:
            return {name: values[:, 0] for name, values in parts.items()}
        found = [
            postgen.compute_corpus_scores(
                family, {name: parts[name][draw].reshape(shape) for name, shape in shapes.items()}
            )
            for draw in range(len(rows))
        ]
        return {name: np.array([each[name] for each in found]) for name in found[0]}

    return ImageSums(np.concatenate(flat, axis=1), corpus)


Interval = tuple[float, float]

BOUNDS = (0.025, 0.975)
RESAMPLING: Mapping[str, int] = {"resamples": RESAMPLES, "seed": SEED}


def compute_intervals(scores: FamilyScores) -> dict[str, Interval]:
    """Intervals by metric. There are none for a single image. A metric has none if the score of a
    resample is infinite; nor has the number of different words, because a resample always holds
    fewer.
    """
    return compute_percentiles(resample_sums(sum_scores(scores)))


def resample_sums(summed: ImageSums) -> Corpus:
    """Compute by metric the score of every resample; empty for a single image."""
    if summed.images < 2:
        return {}
    return join_blocks(summed.drawn(weights) for weights in draw_resamples(summed.images))


def join_blocks(blocks: Iterable[Corpus]) -> Corpus:
    found = list(blocks)
    return {name: np.concatenate([block[name] for block in found]) for name in found[0]}


def pack_draws(found: Corpus) -> dict[str, str]:
    """The first resamples' scores by metric, packed for a board, in base64."""
    some = {name: values[: draws.DRAWS] for name, values in found.items()}
    return {
        name: base64.b64encode(draws.pack_draws(values.tolist())).decode("ascii")
        for name, values in some.items()
        if len(values) == draws.DRAWS and np.isfinite(found[name]).all()
    }


def compute_percentiles(found: Corpus) -> dict[str, Interval]:
    finite = {name: values for name, values in found.items() if np.isfinite(values).all()}
    if not finite:
        return {}
    low, high = np.quantile(np.stack(list(finite.values())), BOUNDS, axis=1).tolist()
    return dict(zip(finite, zip(low, high, strict=True), strict=True))
