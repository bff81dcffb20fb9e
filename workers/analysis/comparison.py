"""Comparison of two systems on the same images: their difference, its interval and p value, and the
difference that could have been found.

The difference is a - b. p comes from approximate randomisation: in each trial a coin decides for
each image whether the two systems exchange their captions, and p is the share of trials in which
they are at least as far apart (two-sided). The interval is that test turned round: the differences
which it would not reject at 5 %, in the same trials. So it has no 0 exactly where p is below .05. A
test at 5 % finds a difference of 2.8 standard errors in 80 of 100 such datasets: this is the
minimum detectable difference.

One network's probabilities differ a little by the format that it came in and by the device: by less
than AGREEMENT of a score. Such a difference is none: p is 1, and the interval reaches 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from service.contract.errors import MetricUnavailable
from service.contract.metrics import signatures
from service.contract.metrics.draws import AGREEMENT
from workers.analysis import pregen_intervals, resamples
from workers.analysis.pregen_intervals import PregenColumns
from workers.analysis.resamples import Floats, ImageSums, Interval
from workers.metrics.family import FamilyScores
from workers.progress import Progress, ignore_progress

DETECTABLE = float(special.ndtri(0.975) + special.ndtri(0.8))
LEVEL = 0.05  # of the test
_EQUAL = 1e-12  # of the two scores: smaller differences come from rounding


@dataclass(frozen=True)
class PairedDifference:
    """The comparison by one metric; None: infinite, or not known."""

    a: float
    b: float
    difference: float | None
    interval: Interval | None
    p: float | None
    minimum_detectable: float | None


def compare_scores(
    a: FamilyScores,
    b: FamilyScores,
    *,
    trials: int = resamples.TRIALS,
    progress: Progress = ignore_progress,
) -> dict[str, PairedDifference]:
    """Compare two systems by each metric of both; MetricUnavailable if they are unlike."""
    names = [name for name in a.corpus if name in b.corpus]
    _check(a, b, names)
    both = resamples.sum_scores(a), resamples.sum_scores(b)
    found = compute_differences(*both, trials=trials, progress=progress)
    return {name: compare_metric(a.corpus[name], b.corpus[name], found.get(name)) for name in names}


def compare_pregen(
    a: PregenColumns,
    b: PregenColumns,
    names: Sequence[str],
    *,
    progress: Progress = ignore_progress,
) -> dict[str, PairedDifference]:
    """Compare two models by pre-gen metrics that are made of sums."""
    mine, others = a.scores(names), b.scores(names)
    found = compute_differences(
        pregen_intervals.sum_pregen_scores(a, names),
        pregen_intervals.sum_pregen_scores(b, names),
        progress=progress,
    )
    return {name: compare_metric(mine[name], others[name], found.get(name)) for name in names}


@dataclass(frozen=True)
class TrialDifferences:
    """Differences of mixed trials, and how much of a common shift is `kept`, from -1 to 1."""

    mixed: Floats
    kept: Floats


def compute_differences(
    a: ImageSums,
    b: ImageSums,
    *,
    trials: int = resamples.TRIALS,
    progress: Progress = ignore_progress,
) -> dict[str, TrialDifferences]:
    """The differences by metric; empty if there is a single image."""
    images = a.images
    if images < 2:
        return {}
    moved, count = b.table - a.table, np.full(trials, float(images))
    totals = a.table.sum(axis=0), b.table.sum(axis=0)
    blocks, kept = [], []
    for coins in resamples.draw_swaps(images, trials):
        change = coins @ moved
        some = count[: len(coins)]
        mine, others = a.corpus(totals[0] + change, some), b.corpus(totals[1] - change, some)
        with np.errstate(invalid="ignore"):  # inf - inf: checked later
            blocks.append({name: mine[name] - others[name] for name in mine if name in others})
        kept.append(1 - 2 * coins.mean(axis=1))
        progress(len(coins) * len(blocks), trials)
    mixed, shares = resamples.join_blocks(blocks), np.concatenate(kept)
    return {name: TrialDifferences(each, shares) for name, each in mixed.items()}


def compare_metric(a: float, b: float, found: TrialDifferences | None) -> PairedDifference:
    difference = a - b if np.isfinite([a, b]).all() else None
    if difference is None or found is None or not np.isfinite(found.mixed).all():
        return PairedDifference(a, b, difference, None, None, None)
    rounding = _EQUAL * (abs(a) + abs(b))
    within = abs(difference) <= AGREEMENT * max(abs(a), abs(b))
    farther = int((np.abs(found.mixed) >= abs(difference) - rounding).sum())
    interval = invert_test(difference, found, rounding)
    if within and interval is not None:
        interval = min(interval[0], 0.0), max(interval[1], 0.0)
    errors = found.mixed - difference * found.kept
    return PairedDifference(
        a=a,
        b=b,
        difference=difference,
        interval=interval,
        p=1.0 if within else (farther + 1) / (len(found.mixed) + 1),
        minimum_detectable=DETECTABLE * float(np.sqrt(np.mean(errors**2))),
    )


def invert_test(
    difference: float, found: TrialDifferences, rounding: float = 0.0
) -> Interval | None:
    """The differences that the test would not reject at 5 %; None if they have no bound, since so
    few images, or trials, never give a p below .05.

    If each image of `a` scored less by a shift, the two would be `difference - shift` apart, and
    `mixed - kept * shift` in a trial. That is at least as far for the shifts between two numbers:
    of a mean, these are the mean differences of the images that were exchanged and of the others.
    A bound is the shift that lies between them in just enough trials for a p of .05.
    """
    both = []
    for side in (-1, 1):
        apart = difference + side * found.mixed
        apart = np.where(np.abs(apart) <= rounding, 0.0, apart)
        left = 1 + side * found.kept
        both.append(np.divide(apart, left, out=np.full_like(apart, np.nan), where=left != 0))
    one, other = both
    unbounded = np.isnan(one) | np.isnan(other)  # all images were exchanged, or none
    lows = np.sort(np.where(unbounded, -np.inf, np.minimum(one, other)))
    highs = np.sort(np.where(unbounded, np.inf, np.maximum(one, other)))
    needed = math.ceil(LEVEL * (len(lows) + 1)) - 1
    if needed < 1 or not np.isfinite([lows[needed - 1], highs[-needed]]).all():
        return None
    return float(lows[needed - 1]), float(highs[-needed])


def _check(a: FamilyScores, b: FamilyScores, names: list[str]) -> None:
    for name in names:
        differs = signatures.describe_signature_difference(a.signatures[name], b.signatures[name])
        if differs:
            raise MetricUnavailable(f"{name} was computed in two ways: {differs}")
    rows = [len(next(iter(side.captions.values()))) for side in (a, b)]
    if rows[0] != rows[1]:
        raise MetricUnavailable(
            f"expected scores of the same images, found {rows[0]} captions and {rows[1]}"
        )
