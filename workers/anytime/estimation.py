"""From the statistics of some images to the score of all: a regression estimator.

A corpus score is a function of its statistics' means. To first order, the score of the whole is
that of the sample plus the mean of one number for each image, the score's derivative in its
direction (BLEU and METEOR are ratios of sums; of CIDEr-D and ROUGE-L it is the image's own score).
Regressed on what is known of all images, pre-gen scores and a baseline's own numbers, that number
says how far this sample is from the whole; what is left over says how sure that is.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from workers.metrics.family import Floats, Statistics
from workers.uncertainty import corpora

_STEP = 1e-5  # of a sum: far above rounding, far below what bends


@dataclass(frozen=True)
class Estimated:
    """`error` is the standard error, with `freedom` degrees of freedom; 0 where all is seen.
    `skewness` is that of what the regression leaves over; `seen` is the share of images.
    """

    value: float
    error: float
    freedom: int
    skewness: float
    seen: float

    def interval(self, critical: float) -> tuple[float, float]:
        """`critical` standard errors to either side, of a Gaussian; wider for few degrees of
        freedom, and moved to where a skewed population has its long tail.
        """
        width = float(-special.stdtrit(self.freedom, special.ndtr(-critical)))
        moved = self._lean(width)
        return self.value + self.error * (moved - width), self.value + self.error * (moved + width)

    def _lean(self, width: float) -> float:
        """Cornish and Fisher's first term, for a studentised mean drawn without replacement: its
        own third cumulant, and what the spread has in common with it.
        """
        if not self.error:
            return 0.0
        single = self.skewness / math.sqrt(self.freedom)
        together = single * math.sqrt(1 - self.seen)
        third = single * (1 - 2 * self.seen) / math.sqrt(1 - self.seen) - 3 * together
        return together / 2 - third * (width**2 - 1) / 6


def influences(family: str, statistics: Statistics) -> dict[str, Floats]:
    """By metric, what each image adds to the corpus score, to first order: they sum to 0, but for
    what rounding leaves.
    """
    summed = corpora.of_statistics(family, statistics)
    sums = summed.table.sum(axis=0)
    up = _STEP * np.maximum(np.abs(sums), _STEP)
    down = np.where(sums >= 0, np.minimum(up, sums), up)  # counts have no roots below 0
    moved = np.concatenate([sums + np.diag(up), sums - np.diag(down)])
    found = summed.corpus(moved, np.full(len(moved), float(summed.images)))
    centred = (summed.table - summed.table.mean(axis=0)) * summed.images
    return {
        metric: centred @ ((scores[: len(up)] - scores[len(up) :]) / (up + down))
        for metric, scores in found.items()
    }


def estimate(
    value: float, influence: Floats, known: Floats, sample: NDArray[np.int64]
) -> Estimated:
    """`value` and `influence` are of the images in `sample`, `known` (images, columns) of all, each
    column of mean 0.
    """
    images, seen = len(known), len(sample)
    if seen == images:
        return Estimated(value, 0.0, images - 1, 0.0, 1.0)
    table = np.concatenate([np.ones((seen, 1)), known[sample]], axis=1)
    inverse = np.linalg.pinv(table.T @ table, rcond=1e-10, hermitian=True)
    weights = table @ inverse[0]  # of each image in the prediction where all columns are 0
    leverage = np.einsum("ij,jk,ik->i", table, inverse, table)
    left = (influence - table @ (inverse @ (table.T @ influence))) / np.maximum(1 - leverage, 0.5)
    unseen = max(0.0, 1 - 1 / (images * float(inverse[0, 0])))
    error = math.sqrt(float((weights * left) @ (weights * left)) * unseen)
    spread = float((left**2).mean())
    return Estimated(
        value=value + float(weights @ influence - influence.mean()),
        error=error,
        freedom=max(1, seen - table.shape[1]),
        skewness=float((left**3).mean()) / spread**1.5 if spread else 0.0,
        seen=seen / images,
    )
