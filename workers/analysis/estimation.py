"""A regression estimator: from the statistics of some images to the score of all.

A corpus score is a function of its statistics' means. To first order, the score of the whole set is
that of the sample plus the mean of one number for each image: the score's derivative in the image's
direction (BLEU and METEOR are ratios of sums; for CIDEr-D and ROUGE-L it is the image's own score).
This number is regressed on what is known of all images: pre-gen scores and a baseline's own
numbers. The fit says how far this sample is from the whole set; what is left over says how sure
that is.
"""

import math
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


def compute_influences(family: str, statistics: Statistics) -> dict[str, Floats]:
    """Compute by metric what each image adds to the corpus score, to first order; the sum is 0."""
    summed = resamples.sum_statistics(family, statistics)
    sums = summed.table.sum(axis=0)
    up = _STEP * np.maximum(np.abs(sums), _STEP)
    down = np.where(sums >= 0, np.minimum(up, sums), up)  # counts below 0 have no roots
    moved = np.concatenate([sums + np.diag(up), sums - np.diag(down)])
    found = summed.corpus(moved, np.full(len(moved), float(summed.images)))
    centred = (summed.table - summed.table.mean(axis=0)) * summed.images
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
) -> dict[str, ScoreEstimate]:
    """Estimates by metric, of these images' statistics; `known` and `past` are of all images."""
    values = postgen.compute_corpus_scores(family, statistics)
    influences = compute_influences(family, statistics)
    if past is None:
        return {
            name: fit_estimate(values[name], influence, known[images], len(known))
            for name, influence in influences.items()
        }
    seen = {name: of_all[images] for name, of_all in past.items()}
    here, whole = (postgen.compute_corpus_scores(family, each) for each in (seen, past))
    found = {}
    for name, of_past in compute_influences(family, seen).items():
        bent = of_past + (here[name] - whole[name])  # the baseline's score here less that of all
        beside = np.column_stack([known[images], bent])
        error = bound_final_error(influences[name] - of_past, len(known))
        found[name] = replace(
            fit_estimate(values[name], influences[name], beside, len(known)),
            baseline=PairedBaseline(whole[name], error),
        )
    return found


def bound_final_error(differences: Floats, images: int) -> float:
    """Find an upper bound of the standard error that the mean will have once all `images` are seen,
    from the differences of those that are: the spread's own error follows from fourth moments.
    """
    seen = len(differences)
    squares = (differences - differences.mean()) ** 2
    variance = float(squares.mean())
    if not variance:
        return 0.0
    spread = float(squares.std()) / variance / math.sqrt(seen) * math.sqrt(1 - seen / images)
    return math.sqrt(variance * seen / (seen - 1) / images) * (1 + _SURE * spread / 2)


def fit_estimate(value: float, influence: Floats, beside: Floats, images: int) -> ScoreEstimate:
    """Estimate the score of all images from a sample; `beside` has a mean of 0 over all."""
    seen = len(influence)
    if seen == images:
        return ScoreEstimate(value, 0.0, images - 1, 0.0, 1.0)
    table = np.column_stack([np.ones(seen), beside])
    inverse = np.linalg.pinv(table.T @ table, rcond=1e-10, hermitian=True)
    weights = table @ inverse[0]  # each image's part in the prediction where all columns are 0
    leverage = np.einsum("ij,jk,ik->i", table, inverse, table)
    left = (influence - table @ (inverse @ (table.T @ influence))) / np.maximum(1 - leverage, 0.5)
    unseen = max(0.0, 1 - 1 / (images * float(inverse[0, 0])))
    spread = float((left**2).mean())
    return ScoreEstimate(
        value=value + float(weights @ influence - influence.mean()),
        error=math.sqrt(float((weights * left) @ (weights * left)) * unseen),
        freedom=max(1, seen - table.shape[1]),
        skewness=float((left**3).mean()) / spread**1.5 if spread else 0.0,
        seen=seen / images,
    )
