"""All 672 pre-gen metrics by plain loops.

Provenance: written from the definitions, independent of workers/. They stand in
deploy/guide/pregen.md (names and edge cases). Slow on purpose: images, captions and tokens are
visited one by one, float64 only.

What the definitions leave open is settled like this:

- Only logp = -inf is a zero probability. A finite logp so low that exp(logp) underflows is still a
  positive probability: perplexity is computed from the logarithms and stays finite as long as
  2 ** (-mean log2 p) does (above float64 it is +inf). `prob` is exp(sum of logp): it underflows to
  0.0 when the sum is below about -745 (and is coarse from -708 on, where float64 is subnormal),
  and from there on it is an ordinary 0, which makes a geomean 0.
- Every tier works on the float64 values of the tier below; a geomean is 0 if any of them is 0, even
  beside an inf.
- A sum above float64 is +inf, and so is the mean or the median that it belongs to.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")

FILTERS = ("none", "filter0", "prefix0", "miss0")
CAPTION_SCORES = ("prob", "pplx", "count", "normcount")
POOLS = ("sum", "mean", "median", "geomean", "max", "min")


def scores(
    logp: Iterable[float],
    rank: Iterable[int],
    caption_offsets: Iterable[int],
    image_offsets: Iterable[int],
) -> dict[str, float]:
    """Every metric by name: dataset score, image score, caption score, filter.

    `logp` holds natural logarithms (-inf allowed), `rank` the number of strictly larger logits,
    `caption_offsets` cut the tokens into captions, `image_offsets` the captions into images.
    """
    tokens = list(zip(map(float, logp), map(int, rank), strict=True))
    captions = _cut(tokens, [int(offset) for offset in caption_offsets])
    images = _cut(captions, [int(offset) for offset in image_offsets])
    result: dict[str, float] = {}
    for token_filter in FILTERS:
        for caption_score in CAPTION_SCORES:
            values = [[_caption(caption_score, token_filter, c) for c in image] for image in images]
            per_image = {"join": [value for image_values in values for value in image_values]}
            for image_pool in POOLS:
                per_image[image_pool] = [_pool(image_pool, v) for v in values]
            for image_pool, image_scores in per_image.items():
                for dataset_pool in POOLS:
                    name = f"{dataset_pool}_{image_pool}_{caption_score}_{token_filter}"
                    result[name] = _pool(dataset_pool, image_scores)
    return result


def _cut(items: Sequence[T], offsets: Sequence[int]) -> list[list[T]]:
    """Cut items at n+1 offsets into n pieces."""
    return [list(items[start:stop]) for start, stop in pairwise(offsets)]


def _select(token_filter: str, caption: Sequence[tuple[float, int]]) -> list[float]:
    """Tier 1: the log-probabilities of the tokens that the filter keeps."""
    kept: list[float] = []
    for logp, rank in caption:
        if token_filter == "prefix0" and rank != 0:
            break
        if token_filter == "filter0" and rank != 0:
            continue
        if token_filter == "miss0" and rank == 0:
            continue
        kept.append(logp)
    return kept


def _caption(caption_score: str, token_filter: str, caption: Sequence[tuple[float, int]]) -> float:
    """Tier 2: the score of one caption."""
    kept = _select(token_filter, caption)
    if caption_score == "count":
        return float(len(kept))
    if caption_score == "normcount":
        return len(kept) / len(caption)
    has_zero = any(logp == -math.inf for logp in kept)
    if caption_score == "prob":
        return 0.0 if not kept or has_zero else math.exp(_sum(kept))
    if not kept or has_zero:
        return math.inf
    return _power_of_two(-_sum([logp / math.log(2.0) for logp in kept]) / len(kept))


def _pool(pool: str, values: Sequence[float]) -> float:
    """Tiers 3 and 4: one number for several; the values are never negative and may be +inf."""
    if pool == "sum":
        return _sum(values)
    if pool == "mean":
        return _sum(values) / len(values)
    if pool == "max":
        return max(values)
    if pool == "min":
        return min(values)
    if pool == "median":
        ordered = sorted(values)
        half = len(ordered) // 2
        if len(ordered) % 2 == 1:
            return ordered[half]
        return (ordered[half - 1] + ordered[half]) / 2.0
    if any(value == 0.0 for value in values):  # geomean
        return 0.0
    return _power_of_two(_sum([math.log2(value) for value in values]) / len(values))


def _sum(values: Sequence[float]) -> float:
    """The correctly rounded sum; beyond float64 an infinity."""
    try:
        return math.fsum(values)
    except OverflowError:
        return sum(values)


def _power_of_two(exponent: float) -> float:
    """2 ** exponent; Python raises OverflowError where the answer is +inf."""
    try:
        return float(2.0**exponent)
    except OverflowError:
        return math.inf
