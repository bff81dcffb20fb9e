"""A regression estimator: from the statistics of some images to the score of all.

A corpus score is a function of its statistics' means. To first order, the score of the whole set is
that of the sample plus the mean of one number for each image: the score's derivative in the image's
direction (BLEU and METEOR are ratios of sums; for CIDEr-D and ROUGE-L it is the image's own score).
This number is regressed on what is known of all images: pre-gen scores and a baseline's own
numbers. The fit says how far this sample is from the whole set; what is left over says how sure
that is.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from workers.analysis import resamples
from workers.metrics import postgen
from workers.metrics.family import Floats, Statistics

_STEP = 1e-5  # of a sum: far above rounding, far below where the score bends
_ROUNDING = 1e-9  # a baseline with the same captions leaves only this
_SURE = 2.0  # standard errors of a spread that its upper bound is above the sample's


@dataclass(frozen=True)
class PairedBaseline:
    """A baseline's score of all images, and an upper bound of the standard error that the
    difference from it will have once all images are seen.
    """

    score: float
    error: float


@dataclass(frozen=True)
class ScoreEstimate:
    """`error` is the standard error, with `freedom` degrees of freedom; it is 0 if all images are
    seen. `skewness` is that of what the regression leaves over; `seen` is the share of images.
    """

    value: float
    error: float
    freedom: int
    skewness: float
    seen: float
    baseline: PairedBaseline | None = None

    def interval(self, critical: float) -> tuple[float, float]:
        """The interval of `critical` standard errors to either side, for a Gaussian. It is wider
        for few degrees of freedom, and moved to where a skewed population has its long tail.
        """
        if self.seen == 1:
            return self.value, self.value
        width = float(-special.stdtrit(self.freedom, special.ndtr(-critical)))
        moved = self._lean(width)
        least, most = (self.error * at for at in (moved - width, moved + width))
        return self.value + least - _ROUNDING, self.value + most + _ROUNDING

    def _lean(self, width: float) -> float:
        """Cornish and Fisher's first term, for a studentised mean drawn without replacement: the
        mean's own third cumulant, and its covariance with the spread.
        """
        single = self.skewness / math.sqrt(self.freedom)
        together = single * math.sqrt(1 - self.seen)
        third = single * (1 - 2 * self.seen) / math.sqrt(1 - self.seen) - 3 * together
        return together / 2 - third * (width**2 - 1) / 6


@dataclass(frozen=True)
class DrawnImages:
    """Facts of a draw. Of all images: the `chances`, None where they are equal, and by metric the
    `columns` of mean 0 that past systems give.
    """

    chances: Floats | None
    columns: Mapping[str, Floats]


def compute_influences(
    family: str, statistics: Statistics, chances: Floats | None = None
) -> dict[str, Floats]:
    """Compute by metric what each image adds to the corpus score, to first order; the sum is 0,
    weighted by the inverse of `chances`.
    """
    summed = resamples.sum_statistics(family, statistics)
    weighed = summed.table if chances is None else _weigh(chances)[:, None] * summed.table
    sums = weighed.sum(axis=0)
    up = _STEP * np.maximum(np.abs(sums), _STEP)
    down = np.where(sums >= 0, np.minimum(up, sums), up)  # counts below 0 have no roots
    moved = np.concatenate([sums + np.diag(up), sums - np.diag(down)])
    found = summed.corpus(moved, np.full(len(moved), float(summed.images)))
    centred = (summed.table - weighed.mean(axis=0)) * summed.images
    return {
        metric: centred @ ((scores[: len(up)] - scores[len(up) :]) / (up + down))
        for metric, scores in found.items()
    }


def estimate_scores(
    family: str,
    statistics: Statistics,
    images: NDArray[np.int64],
    known: Floats,
    past: Statistics | None = None,
    drawn: DrawnImages | None = None,
) -> dict[str, ScoreEstimate]:
    """Estimates by metric, of these images' statistics; `known` and `past` are of all images.
    `drawn`: with unequal chances.
    """
    if drawn is None or len(images) == len(known):
        drawn = DrawnImages(None, {})
    chances = None if drawn.chances is None else drawn.chances[images]
    values = _compute_scores(family, statistics, chances)
    baseline = None if past is None else _SeenBaseline.of(family, past, images, chances)
    found = {}
    for name, influence in compute_influences(family, statistics, chances).items():
        columns = [known[images]]
        if name in drawn.columns:
            columns.append(drawn.columns[name][images])
        if baseline is not None:
            columns.append(baseline.influences[name] + baseline.bends[name])
        beside = np.column_stack(columns)
        estimate = fit_estimate(values[name], influence, beside, len(known), chances)
        if baseline is not None:
            differences = influence - baseline.influences[name]
            error = bound_final_error(differences, len(known), chances)
            estimate = replace(estimate, baseline=PairedBaseline(baseline.whole[name], error))
        found[name] = estimate
    return found


@dataclass(frozen=True)
class _SeenBaseline:
    """A baseline's score of all images by metric, its influences on the images that are seen, and
    its bends: its scores of these less those of all.
    """

    whole: Mapping[str, float]
    influences: Mapping[str, Floats]
    bends: Mapping[str, float]

    @classmethod
    def of(
        cls, family: str, past: Statistics, images: NDArray[np.int64], chances: Floats | None
    ) -> "_SeenBaseline":
        seen = {name: values[images] for name, values in past.items()}
        here = _compute_scores(family, seen, chances)
        whole = postgen.compute_corpus_scores(family, past)
        bends = {name: here[name] - whole[name] for name in whole}
        return cls(whole, compute_influences(family, seen, chances), bends)


def bound_final_error(differences: Floats, images: int, chances: Floats | None = None) -> float:
    """Find an upper bound of the standard error that the mean will have once all `images` are seen,
    from the differences of those that are: the spread's own error follows from fourth moments.
    """
    seen = len(differences)
    weights = np.ones(seen) if chances is None else _weigh(chances)
    squares = (differences - differences @ weights / seen) ** 2
    variance = float(weights @ squares) / seen
    if not variance:
        return 0.0
    deviation = float(np.std(weights * (squares - variance))) / variance
    spread = deviation / math.sqrt(seen) * math.sqrt(1 - seen / images)
    return math.sqrt(variance * seen / (seen - 1) / images) * (1 + _SURE * spread / 2)


def _compute_scores(
    family: str, statistics: Statistics, chances: Floats | None
) -> Mapping[str, float]:
    """The score of all images, of a sample's weighted sums."""
    if chances is None:
        return postgen.compute_corpus_scores(family, statistics)
    summed = resamples.sum_statistics(family, statistics)
    found = summed.drawn(_weigh(chances)[None])
    return {name: float(values[0]) for name, values in found.items()}


def _weigh(chances: Floats) -> Floats:
    """Weights of a sample's images; their sum is the number of images."""
    weights: Floats = 1 / chances
    weights *= len(chances) / weights.sum()
    return weights


def fit_estimate(
    value: float,
    influence: Floats,
    beside: Floats,
    images: int,
    chances: Floats | None = None,
) -> ScoreEstimate:
    """Estimate the score of all images from a sample; `beside` has a mean of 0 over all. With
    `chances` of these images to be in the sample, it is Särndal's regression estimator.
    """
    seen = len(influence)
    if seen == images:
        return ScoreEstimate(value, 0.0, images - 1, 0.0, 1.0)
    table = np.column_stack([np.ones(seen), beside])
    weighed = table if chances is None else table / chances[:, None]
    inverse = np.linalg.pinv(weighed.T @ table, rcond=1e-10, hermitian=True)
    weights = weighed @ inverse[0]  # each image's part in the prediction where all columns are 0
    leverage = np.einsum("ij,jk,ik->i", weighed, inverse, table)
    left = (influence - table @ (inverse @ (weighed.T @ influence))) / np.maximum(1 - leverage, 0.5)
    freedom = max(1, seen - table.shape[1])
    if chances is not None:
        shift = float(weights @ influence)
        return _weigh_error(value + shift, weights * left, chances, freedom)
    unseen = max(0.0, 1 - 1 / (images * float(inverse[0, 0])))
    spread = float((left**2).mean())
    return ScoreEstimate(
        value=value + float(weights @ influence - influence.mean()),
        error=math.sqrt(float((weights * left) @ (weights * left)) * unseen),
        freedom=freedom,
        skewness=float((left**3).mean()) / spread**1.5 if spread else 0.0,
        seen=seen / images,
    )


def _weigh_error(value: float, moves: Floats, chances: Floats, freedom: int) -> ScoreEstimate:
    """The estimate of images that were drawn independently, if each moves it by so much. Skewness
    and share are those of a uniform sample that leans alike.
    """
    open_ = 1 - chances
    variance = float(open_ @ moves**2)
    if not variance:
        return ScoreEstimate(value, 0.0, freedom, 0.0, float(chances.mean()))
    seen = float((chances * open_) @ moves**2) / variance
    together = float(open_**2 @ moves**3) / variance**1.5
    skewness = together * math.sqrt(len(moves) / (1 - seen))
    return ScoreEstimate(value, math.sqrt(variance), freedom, skewness, seen)
