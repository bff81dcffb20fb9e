"""Intervals: 1,000 resamples of all metrics' statistics, beside a plain loop that draws images and
sums them up again each time. Made-up statistics of the families' own form.
"""

import numpy as np
from rows import Row, seconds  # beside this file

from helpers.random_statistics import FAMILIES, scores, statistics
from workers.analysis import comparison, pregen_intervals, resamples
from workers.analysis.pregen_intervals import PregenColumns
from workers.metrics import postgen, pregen

_PART = 20  # of the baseline's resamples


def measure(images: int) -> list[Row]:
    kept = {family: statistics(family, images) for family in FAMILIES}
    given = [scores(family, each) for family, each in kept.items()]

    def ours() -> None:
        resamples._drawn.cache_clear()
        for each in given:
            resamples.compute_intervals(each)

    loop = seconds(lambda: _loop(kept, images)) * resamples.RESAMPLES / _PART
    baseline = "a plain loop (a part, scaled)"
    two = [scores("bleu", statistics("bleu", images, seed)) for seed in (1, 2)]
    rows = [
        Row(f"intervals of {len(given)} families", seconds(ours, 3), baseline, loop),
        Row(
            "BLEU-1..4 compared",
            seconds(lambda: comparison.compare_scores(*two), 3),
            baseline,
            seconds(lambda: _exchanges(two, images)) * resamples.TRIALS / _PART,
            "10,000 exchanges",
        ),
    ]
    return [*rows, _pregen(images)]


def _loop(kept, images) -> None:
    random = np.random.default_rng(0)
    for _ in range(_PART):
        drawn = random.integers(0, images, images)
        for family, each in kept.items():
            chosen = {name: values[drawn] for name, values in each.items()}
            postgen.compute_corpus_scores(family, chosen)


def _exchanges(two, images) -> None:
    random = np.random.default_rng(0)
    for _ in range(_PART):
        coins = random.integers(0, 2, images).astype(bool)
        for one, other in (two, two[::-1]):
            mixed = {
                name: np.where(
                    coins.reshape(-1, *[1] * (values.ndim - 1)), other.statistics[name], values
                )
                for name, values in one.statistics.items()
            }
            postgen.compute_corpus_scores("bleu", mixed)


def _pregen(images: int) -> Row:
    random = np.random.default_rng(0)
    lengths = random.integers(6, 16, images * 5)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = offsets[-1]
    parts = (
        -random.exponential(2.0, tokens).astype(np.float32),
        np.where(random.random(tokens) < 0.4, 0, 7),
        offsets,
        np.arange(0, images * 5 + 1, 5),
    )
    found = seconds(lambda: pregen_intervals.compute_pregen_intervals(PregenColumns(*parts)), 3)
    loop = seconds(lambda: pregen.scores(*parts), 3) * resamples.RESAMPLES
    return Row("intervals of 672 pre-gen scores", found, "all scores 1,000 times (scaled)", loop)
