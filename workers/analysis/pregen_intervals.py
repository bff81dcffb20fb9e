"""Intervals of pre-gen scores. Sums, means and geometric means over images (for `join`: over their
captions, drawn image by image) are made of sums. The highest, lowest or middle of images drawn anew
is one of the values there are, by a binomial law, so nothing is drawn for it. The interval of the
median of all captions is Woodruff's: the values at which the captions' distribution may be one
half, given how sure the distribution is.

An extreme is less sure than this says: no resample goes beyond what was seen.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from service.contract.metrics import catalogue
from workers.analysis.resamples import (
    BOUNDS,
    Corpus,
    Floats,
    ImageSums,
    Interval,
    compute_percentiles,
    resample_sums,
)
from workers.analysis.resamples import pack_draws as packed
from workers.inference.columns import ProbabilityColumns
from workers.metrics import pregen
from workers.metrics.pregen import Offsets

_NORMAL = float(special.ndtri(BOUNDS[1]))
_CAPTIONS = ("join", "captions")  # a column: how many captions an image has
_Column = tuple[str, str]  # the tiers from images down, and what part of them is summed
_TOKENS = "tokens"  # the tiers of a column that is summed over tokens
_OF_TOKENS: Mapping[str, Sequence[_Column]] = {
    catalogue.CORPUS: ((_TOKENS, "logs"), (_TOKENS, "count")),
    catalogue.BITS: ((_TOKENS, "logs"), (_TOKENS, "bytes")),
}


@dataclass(frozen=True, eq=False)
class PregenColumns:
    """Columns as `pregen.scores` takes them, with the bytes of each image's references."""

    logp: NDArray[np.floating[Any]]
    rank: NDArray[np.integer[Any]]
    caption_offsets: Offsets
    image_offsets: Offsets
    image_bytes: NDArray[np.integer[Any]] | None = None

    @classmethod
    def of(
        cls, columns: ProbabilityColumns, references: Sequence[Sequence[str]] | None = None
    ) -> Self:
        parts = columns.logp, columns.rank, columns.caption_offsets, columns.image_offsets
        return cls(*parts, None if references is None else pregen.count_bytes(references))

    @property
    def parts(self) -> tuple[NDArray[np.floating[Any]], NDArray[np.integer[Any]], Offsets, Offsets]:
        return self.logp, self.rank, self.caption_offsets, self.image_offsets

    @cached_property
    def captions(self) -> dict[str, Floats]:
        """The 16 tier-2 scores of every caption."""
        found = pregen.score_captions(self.logp, self.rank, self.caption_offsets)
        names = map("_".join, pregen.CAPTION_KEYS)
        return dict(zip(names, found, strict=True))

    @cached_property
    def images(self) -> dict[str, Floats]:
        """The 96 tier-3 scores of every image."""
        return pregen.score_images(*self.parts)

    def scores(self, names: Sequence[str]) -> dict[str, float]:
        return pregen.scores(*self.parts, names, self.image_bytes)

    def column(self, name: str, part: str) -> Floats:
        """Summand of each image: its score, logarithm or if it is 0; of its tokens, their logp,
        number or bytes.
        """
        if name == _TOKENS:
            return self._of_tokens(part)
        image, _, rest = name.partition("_")
        if name == "join":
            return np.diff(self.image_offsets).astype(np.float64)
        if image == "join":
            return self.added(_part(self.captions[rest], part))
        return _part(self.images[name], part)

    def _of_tokens(self, part: str) -> Floats:
        if part == "bytes":
            assert self.image_bytes is not None
            return self.image_bytes.astype(np.float64)
        bounds = np.asarray(self.caption_offsets)[np.asarray(self.image_offsets)].astype(np.int64)
        if part == "count":
            return np.diff(bounds).astype(np.float64)
        return np.add.reduceat(self.logp, bounds[:-1], dtype=np.float64)

    def added(self, values: Floats) -> Floats:
        """The sum of captions' values for each image."""
        return np.add.reduceat(values, np.asarray(self.image_offsets[:-1], np.int64))


def compute_pregen_intervals(
    material: PregenColumns, names: Sequence[str] | None = None
) -> dict[str, Interval]:
    """95 % intervals by name; none of a single image, or where a bound is infinite."""
    wanted = list(catalogue.PREGEN if names is None else names)
    if len(material.image_offsets) <= 2:
        return {}
    found = compute_percentiles(resample_sums(sum_pregen_scores(material, wanted)))
    for name in wanted:
        if catalogue.is_summed(name):
            continue
        last, image, rest = name.split("_", 2)
        if (last, image) == ("median", "join"):
            found[name] = _median_of_captions(material, material.captions[rest])
        else:
            values = np.sort(material.images[f"{last if image == 'join' else image}_{rest}"])
            found[name] = _of_ordered(values, last)
    return {name: found[name] for name in wanted if np.isfinite(found.get(name, np.inf)).all()}


def pack_pregen_draws(material: PregenColumns, names: Sequence[str]) -> dict[str, str]:
    """Pack the resampled scores that boards need, those of all tokens together among them."""
    kept = *catalogue.HEADLINE, *catalogue.TOKEN_METRICS
    full = [catalogue.find_metric(name).name for name in kept]
    return packed(
        resample_sums(sum_pregen_scores(material, [name for name in full if name in names]))
    )


def sum_pregen_scores(material: PregenColumns, names: Iterable[str]) -> ImageSums:
    """The sums for those of the metrics that are made of sums, if these are finite."""
    columns: dict[_Column, Floats] = {_CAPTIONS: material.column(*_CAPTIONS)}
    makers: dict[str, Callable[[Floats, Floats], Floats]] = {}
    for name in names:
        if not catalogue.is_summed(name):
            continue
        full = catalogue.find_metric(name).name
        needed = _needed(full)
        for key in needed:
            columns.setdefault(key, material.column(*key))
        if all(np.isfinite(columns[key]).all() for key in needed):
            makers[name] = _maker(full, needed, list(columns))

    def corpus(sums: Floats, images: Floats) -> Corpus:
        return {name: make(sums, images) for name, make in makers.items()}

    table = np.stack(list(columns.values()), axis=1)
    return ImageSums(np.where(np.isfinite(table), table, 0.0), corpus)


def _needed(name: str) -> Sequence[_Column]:
    """The columns from which a score is made."""
    if name in _OF_TOKENS:
        return _OF_TOKENS[name]
    last, of = name.split("_", 1)
    return [(of, part) for part in (("logs", "zeros") if last == "geomean" else ("values",))]


def _maker(
    name: str, needed: Sequence[_Column], columns: Sequence[_Column]
) -> Callable[[Floats, Floats], Floats]:
    """Make a function from sums of columns to one score."""
    first, *others = map(columns.index, needed)
    last, of = name.split("_", 1)

    def make(sums: Floats, images: Floats) -> Floats:
        if last == "sum":
            return sums[:, first]
        if name in pregen.TOKEN_FORMULAS:
            return pregen.TOKEN_FORMULAS[name](sums[:, first], sums[:, others[0]])
        mean: Floats = sums[:, first] / (sums[:, 0] if of.startswith("join_") else images)
        if last == "mean":
            return mean
        geomean: Floats = np.where(sums[:, others[0]] > 0, 0.0, np.exp2(mean))
        return geomean

    return make


def _part(values: Floats, part: str) -> Floats:
    match part:
        case "values":
            found = values
        case "zeros":
            found = (values == 0).astype(np.float64)
        case _:
            found = np.log2(np.where(values == 0, 1.0, values))
    return found


def _of_ordered(values: Floats, last: str) -> Interval:
    """The interval of the lowest, highest or middle value, when as many are drawn from these."""
    images = len(values)
    ranks = {
        "min": (1,),
        "max": (images,),
        "median": ((images + 1) // 2, images // 2 + 1),
    }[last]
    low, high = (
        float(np.mean([values[_place(images, rank, bound) - 1] for rank in ranks]))
        for bound in BOUNDS
    )
    return low, high


@lru_cache(maxsize=64)
def _place(images: int, rank: int, share: float) -> int:
    """The lowest place, from 1, at or below which the value of this rank lies so often."""
    shares = np.arange(1, images + 1) / images
    below = special.betainc(rank, images - rank + 1, shares)  # binomial: `rank` draws or more
    return int(np.searchsorted(below, share)) + 1


def _median_of_captions(material: PregenColumns, values: Floats) -> Interval:
    distinct = np.unique(values)
    counts = material.column(*_CAPTIONS)

    def bound(value: float, errors: float) -> float:
        """A bound on the share of captions up to this value."""
        below = material.added((values <= value).astype(np.float64))
        share = below.sum() / len(values)
        deviation = np.linalg.norm(below - share * counts) / len(values)
        return float(share + errors * deviation)

    low, high = (
        float(distinct[min(len(distinct) - 1, bisect_left(distinct, 0.5, key=at))])
        for at in (lambda value: bound(value, _NORMAL), lambda value: bound(value, -_NORMAL))
    )
    return low, high
