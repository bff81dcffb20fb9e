"""The 672 pre-gen metrics from columns, and those of all tokens together; numpy alone, float64
throughout. Their names and edge cases are described in deploy/guide/pregen.md.

Each tier is computed for all sixteen caption scores at once: (16, captions) -> (16, images) ->
numbers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import InvalidColumns, UnknownMetric
from service.contract.metrics import catalogue

Floats = NDArray[np.float64]
Offsets = NDArray[np.integer[Any]]

CAPTION_KEYS = [
    (score, chosen) for chosen in catalogue.FILTERS for score in catalogue.CAPTION_SCORES
]

# The 84 metrics that need no probability.
INSTANT = [spec.name for spec in catalogue.PREGEN.values() if spec.needs == ("prefix",)]


def scores(
    logp: NDArray[np.floating[Any]],
    rank: NDArray[np.integer[Any]],
    caption_offsets: Offsets,
    image_offsets: Offsets,
    names: Sequence[str] | None = None,
    image_bytes: NDArray[np.integer[Any]] | None = None,
) -> dict[str, float]:
    """Scores of a dataset by name; `names=None` means the 672, an alias keeps its own name.

    Offsets have n+1 entries from 0: caption_offsets index tokens (END included), image_offsets
    index captions. logp are natural logarithms and may be -inf. `image_bytes`: of each image's
    references, which bits_per_byte needs (`count_bytes`). Raises InvalidColumns if the arrays
    contradict each other, UnknownMetric if a name is not that of a pre-gen metric.
    """
    wanted = {name: _pregen_name(name) for name in (catalogue.PREGEN if names is None else names)}
    captions = score_captions(logp, rank, caption_offsets)
    image_offsets = _offsets("image_offsets", image_offsets, captions.shape[1])
    images = {"join": captions}
    tiers = {name: full.split("_") for name, full in wanted.items() if name not in TOKEN_FORMULAS}
    for aggregate in {image for _, image, _, _ in tiers.values()} - {"join"}:
        images[aggregate] = _RAGGED[aggregate](captions, image_offsets)
    needed = {(last, first) for last, first, _, _ in tiers.values()}
    columns = {(last, first): _WHOLE[last](images[first]) for last, first in needed}
    found = {
        name: float(columns[last, first][CAPTION_KEYS.index((score, chosen))])
        for name, (last, first, score, chosen) in tiers.items()
    }
    found |= {
        name: _score_tokens(name, logp, image_bytes, len(image_offsets) - 1)
        for name in wanted
        if name in TOKEN_FORMULAS
    }
    return {name: found[name] for name in wanted}


def count_bytes(references: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """The bytes of each image's references in UTF-8."""
    return np.array([sum(len(text.encode()) for text in each) for each in references], np.int64)


def _score_tokens(
    name: str,
    logp: NDArray[np.floating[Any]],
    image_bytes: NDArray[np.integer[Any]] | None,
    images: int,
) -> float:
    logs = np.asarray(logp, np.float64)
    size = float(len(logs))
    if name == catalogue.BITS:
        if image_bytes is None or len(image_bytes) != images:
            raise InvalidColumns(
                f"{name}: expected image_bytes, the bytes of the references of each of {images} "
                f"images, found {'none' if image_bytes is None else len(image_bytes)}"
            )
        size = float(np.sum(image_bytes))
    return float(TOKEN_FORMULAS[name](np.asarray(logs.sum()), np.asarray(size)))


def _compute_perplexity(logs: Floats, tokens: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-logs / tokens))


def _compute_bits(logs: Floats, sizes: Floats) -> Floats:
    """Bits per byte; infinite where all references are empty."""
    return np.where(sizes > 0, -logs / math.log(2) / np.maximum(sizes, 1), np.inf)


# Metrics of all tokens together, from the sum of their logp and the number of tokens or bytes.
TOKEN_FORMULAS: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    catalogue.CORPUS: _compute_perplexity,
    catalogue.BITS: _compute_bits,
}


def score_images(
    logp: NDArray[np.floating[Any]],
    rank: NDArray[np.integer[Any]],
    caption_offsets: Offsets,
    image_offsets: Offsets,
) -> dict[str, Floats]:
    """The 96 tier-3 scores of images by name (`max_normcount_prefix0`): arrays of image values."""
    captions = score_captions(logp, rank, caption_offsets)
    image_offsets = _offsets("image_offsets", image_offsets, captions.shape[1])
    return {
        f"{aggregate}_{score}_{chosen}": values
        for aggregate, reduce in _RAGGED.items()
        for (score, chosen), values in zip(
            CAPTION_KEYS, reduce(captions, image_offsets), strict=True
        )
    }


def score_prefixes(
    prefixes: NDArray[np.integer[Any]],
    lengths: NDArray[np.integer[Any]],
    image_offsets: Offsets,
    names: Sequence[str] = INSTANT,
) -> dict[str, float]:
    """The scores that need no probability, from each caption's prefix and length (with END)."""
    return scores(*make_columns(prefixes, lengths), image_offsets, names)


def make_columns(
    prefixes: NDArray[np.integer[Any]], lengths: NDArray[np.integer[Any]]
) -> tuple[Floats, NDArray[np.int64], Offsets]:
    """Columns of captions of which only hits are known: all after the prefix are misses."""
    hits = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rank = (hits >= np.repeat(prefixes, lengths)).astype(np.int64)
    return np.zeros(len(rank)), rank, np.concatenate([[0], np.cumsum(lengths)])


def _pregen_name(name: str) -> str:
    spec = catalogue.find_metric(name)
    if spec.family != "pregen":
        raise UnknownMetric(f"{name} is computed from captions, not from columns: see postgen.py")
    return spec.name


def _offsets(name: str, given: Offsets, items: int) -> NDArray[np.int64]:
    """Checked offsets: every caption has a token (END), and every image has a caption."""
    if not np.issubdtype(np.asarray(given).dtype, np.integer):
        raise InvalidColumns(f"{name}: expected integers, found {np.asarray(given).dtype}")
    offsets = np.asarray(given).astype(np.int64)  # unsigned ones would wrap around in differences
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != items or (np.diff(offsets) < 1).any():
        raise InvalidColumns(
            f"{name}: expected at least two entries, strictly rising from 0 to {items}, "
            f"found {len(offsets)} entries from {offsets[:1]} to {offsets[-1:]}"
        )
    return offsets


def score_captions(
    logp: NDArray[np.floating[Any]], rank: NDArray[np.integer[Any]], offsets: Offsets
) -> Floats:
    """The caption scores (16, captions), in the order of CAPTION_KEYS."""
    if len(logp) != len(rank):
        raise InvalidColumns(f"expected a rank for each of {len(logp)} tokens, found {len(rank)}")
    offsets = _offsets("caption_offsets", offsets, len(logp))
    logs = np.asarray(logp, np.float64)
    if np.isnan(logs).any() or logs.max() > _ROUNDING:
        raise InvalidColumns("expected log-probabilities, all at most 0 and none of them NaN")
    starts, lengths = offsets[:-1], np.diff(offsets)
    hit = np.asarray(rank) == 0
    misses = np.cumsum(~hit)
    missed_before = misses[starts] - ~hit[starts]
    prefix = hit & (misses == np.repeat(missed_before, lengths))
    everything = np.ones_like(hit)
    chosen = {"none": everything, "filter0": hit, "prefix0": prefix, "miss0": ~hit}
    return np.concatenate(
        [_chosen_scores(logs, chosen[name], starts, lengths) for name in catalogue.FILTERS]
    )


_ROUNDING = 1e-3  # a log-probability may exceed 0 by so much, because the softmax was rounded


def _chosen_scores(
    logs: Floats, chosen: NDArray[np.bool_], starts: Offsets, lengths: Offsets
) -> Floats:
    """prob, pplx, count, normcount of the chosen tokens; an empty choice has 0, inf, 0, 0."""
    count = np.add.reduceat(chosen, starts, dtype=np.float64)
    total = np.add.reduceat(np.where(chosen, logs, 0.0), starts)
    some = count > 0
    with np.errstate(over="ignore"):
        prob = np.where(some, np.exp(total), 0.0)
        pplx = np.where(some, np.exp(-total / np.where(some, count, 1.0)), np.inf)
    return np.stack([prob, pplx, count, count / lengths])


def _ragged_median(values: Floats, offsets: Offsets) -> Floats:
    """Medians of images, by one sort for each number of captions."""
    lengths = np.diff(offsets)
    result = np.empty((len(values), len(lengths)))
    for length in np.unique(lengths):
        images = np.flatnonzero(lengths == length)
        places = offsets[images][:, None] + np.arange(length)
        result[:, images] = _median(values[:, places])
    return result


def _median(values: Floats) -> Floats:
    """The median over the last axis: the mean of the two middle values, which may be inf."""
    middle = values.shape[-1]
    ordered = np.partition(values, sorted({(middle - 1) // 2, middle // 2}), axis=-1)
    low, high = ordered[..., (middle - 1) // 2], ordered[..., middle // 2]
    return np.asarray((low + high) / 2)


def _geomean(values: Floats, mean_of_logs: Callable[[Floats], Floats]) -> Floats:
    """The geometric mean: 0 if any value is 0, else 2^mean(log2), so that inf propagates."""
    with np.errstate(divide="ignore"):
        logs = np.log2(values)
    zero = np.isneginf(logs)
    means = mean_of_logs(np.where(zero, 0.0, logs))
    any_zero = mean_of_logs(zero.astype(np.float64)) > 0
    with np.errstate(over="ignore"):
        return np.where(any_zero, 0.0, np.exp2(means))


def _ragged_mean(values: Floats, offsets: Offsets) -> Floats:
    return np.add.reduceat(values, offsets[:-1], axis=1) / np.diff(offsets)


def _over(reduce: np.ufunc) -> Callable[[Floats, Offsets], Floats]:
    return lambda values, offsets: np.asarray(reduce.reduceat(values, offsets[:-1], axis=1))


_RAGGED: Mapping[str, Callable[[Floats, Offsets], Floats]] = {
    "sum": _over(np.add),
    "mean": _ragged_mean,
    "median": _ragged_median,
    "geomean": lambda values, offsets: _geomean(values, lambda logs: _ragged_mean(logs, offsets)),
    "max": _over(np.maximum),
    "min": _over(np.minimum),
}
_WHOLE: Mapping[str, Callable[[Floats], Floats]] = {
    "sum": lambda values: values.sum(axis=1),
    "mean": lambda values: values.mean(axis=1),
    "median": _median,
    "geomean": lambda values: _geomean(values, lambda logs: logs.mean(axis=1)),
    "max": lambda values: values.max(axis=1),
    "min": lambda values: values.min(axis=1),
}
