"""Decision accuracy of a metric that was chosen on other trainings, for `SIGNAL.md`.

The best of hundreds of metrics is better on the trainings on which it was chosen than on others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pairs = NDArray[np.bool_]  # (trainings, trainings)
CRITICAL = 1.96  # standard errors of a paired test at 5 %
_EQUAL = 1e-12


@dataclass(frozen=True)
class TrainingScores:
    """Scores (metrics, trainings, steps), the higher the better, of trainings with the same steps.
    `order` (trainings, trainings) of final scores: 1 where the second is better, -1 where the first
    is, 0 where a paired test does not tell.
    """

    metrics: Sequence[str]
    recipes: Sequence[str]
    steps: NDArray[np.float64]
    scores: NDArray[np.float64]
    order: NDArray[np.float64]

    def agree(self, percent: int) -> NDArray[np.bool_]:
        """Tell for each metric and pair whether the early order is that of the end; equal scores
        have none.
        """
        (column,) = np.flatnonzero(self.steps * 100 == percent * self.steps[-1])
        early = self.scores[:, :, column]
        later = early[:, None, :] - early[:, :, None]
        return (np.sign(later) == self.order) & (self.order != 0)

    def measure(self, percent: int, kept: Pairs | bool = True) -> NDArray[np.float64]:
        """Measure decision accuracy of each metric, of the pairs that are kept; not a number where
        none of them is told apart.
        """
        right, pairs = (self.agree(percent) & kept).sum((1, 2)), self.count_pairs(kept)
        return right / (2 * pairs) if pairs else np.full(len(self.metrics), np.nan)

    def count_pairs(self, kept: Pairs | bool = True) -> int:
        """Count pairs that are told apart."""
        return np.count_nonzero((self.order != 0) & kept) // 2

    def select_recipes(self, recipes: Sequence[str]) -> Pairs:
        """Select pairs of trainings that both have one of these recipes."""
        kept = np.isin(self.recipes, recipes)
        return np.logical_and.outer(kept, kept)

    def select_architecture(self, *, same: bool) -> Pairs:
        """Select pairs of one architecture, the first word of a recipe, or of two."""
        words = np.array([recipe.split()[0] for recipe in self.recipes])
        return np.equal.outer(words, words) == same


def build_scores(
    rows: Sequence[Mapping[str, Any]],
    signs: Mapping[str, int],
    images: Mapping[str, NDArray[np.float64]],
) -> TrainingScores:
    """Build the scores of metrics with a sign from rows of evaluations. `images`: each training's
    final score of each image by the target.
    """
    runs = sorted(images)
    steps = sorted({row["step"] for row in rows})
    by_place = {(row["run"], row["step"]): row["scores"] for row in rows}
    metrics = [name for name in signs if all(name in scores for scores in by_place.values())]
    scores = [
        [[signs[name] * by_place[run, step][name] for step in steps] for run in runs]
        for name in metrics
    ]
    recipes = {row["run"]: row["recipe"] for row in rows}
    return TrainingScores(
        metrics,
        [recipes[run] for run in runs],
        np.array(steps),
        np.array(scores),
        order_finals([images[run] for run in runs]),
    )


def order_finals(images: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Order trainings by the mean of their images' scores, where a paired test tells them apart."""
    differences = np.array([[other - one for other in images] for one in images])
    means = differences.mean(-1)
    errors = differences.std(-1, ddof=1) / np.sqrt(differences.shape[-1])
    return np.sign(means) * (np.abs(means) > CRITICAL * errors)


def judge_choices(found: TrainingScores, percent: int) -> float:
    """Judge metrics that were chosen on half of the recipes on the other half: the mean over all
    halves, weighted by pairs; not a number where no half has pairs that are told apart.
    """
    recipes = sorted(set(found.recipes))
    judged, weights = [], []
    for chosen_on, judged_on in _halve(recipes):
        chosen = found.measure(percent, found.select_recipes(chosen_on))
        kept = found.select_recipes(judged_on)
        others = found.measure(percent, kept)
        if not (np.isnan(chosen).any() or np.isnan(others).any()):
            judged.append(others[find_best(chosen)].mean())
            weights.append(found.count_pairs(kept))
    return float(np.average(judged, weights=weights)) if judged else float("nan")


def find_best(accuracies: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Find the metrics that are best, all of them where several are."""
    return accuracies >= np.nanmax(accuracies) - _EQUAL


def _halve(recipes: Sequence[str]) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    for half in combinations(recipes, len(recipes) // 2):
        other = [recipe for recipe in recipes if recipe not in half]
        yield half, other
        yield other, half


def judge_transfer(chosen_on: TrainingScores, judged_on: TrainingScores, percent: int) -> float:
    """Judge the metrics that are best of one set on another set."""
    best = find_best(chosen_on.measure(percent))
    names = {name for name, is_best in zip(chosen_on.metrics, best, strict=True) if is_best}
    accuracies = judged_on.measure(percent)
    shared = [name in names for name in judged_on.metrics]
    return float(accuracies[shared].mean())
