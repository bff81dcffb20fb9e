"""Learn the metric from captions: weights that put right captions above wrong ones.

The loss is logistic in the difference of the two captions' sums, so that only contrasts count and
no caption is good or bad by itself. Every kind of contrast counts the same. No weight is negative.
The problem is convex, and its solution does not depend on where the search begins.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from service.contract.errors import MetricFailed
from workers.metrics import references
from workers.metrics.accord import contrasts, features, language
from workers.metrics.accord.contrasts import Contrast
from workers.metrics.accord.language import Images, Language
from workers.metrics.accord.model import Model
from workers.metrics.accord.words import ENGLISH
from workers.metrics.family import Floats, Score, ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.tokens import Tokenizer
from workers.progress import Progress, ignore_progress

_NOTHING = 1e-6  # weights of less together are rounding


@dataclass(frozen=True)
class Recipe:
    """`beta`: the penalty on squared weights of standardised features, which is the largest within
    a standard error of the best on contrasts of other images. `most`: contrasts of each kind.
    """

    beta: float = 0.1
    most: int = 3000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class LearnedAccord:
    """A model, the contrasts that it was learned from, and the features of their captions."""

    model: Model
    contrasts: Sequence[Contrast]
    right: Floats
    wrong: Floats


def learn(
    images: Images,
    further: Iterable[Contrast],
    jvm: Jvm,
    recipe: Recipe = Recipe(),
    *,
    score: Score,
    tokenizer: Tokenizer,
    progress: Progress = ignore_progress,
    about: Mapping[str, Any] | None = None,
    stems: str = ENGLISH,
) -> LearnedAccord:
    """Learn from images' captions, as tokens. `further` are contrasts that others made of them;
    `score` scores captions by any family; `stems` is one of `words.STEMS`.
    """
    known = language.learn(images, tokenizer, stems)
    found = chosen(images, further, recipe, stems)
    right, wrong = measured(found, known, jvm, score=score, tokenizer=tokenizer, progress=progress)
    kinds = np.array([each.kind for each in found])
    weights, middle = fitted(right, wrong, kinds, recipe.beta)
    described = {"images": len(images), "contrasts": counted(found), "recipe": vars(recipe)}
    model = Model(known, weights, middle, {**described, **(about or {})})
    return LearnedAccord(model, found, right, wrong)


def fitted(right: Floats, wrong: Floats, kinds: NDArray[Any], beta: float) -> tuple[Floats, float]:
    """The weights of features, and the sum of the features at which right and wrong captions are as
    likely. Raises MetricFailed if no feature tells them apart.
    """
    weights = fit(right - wrong, kinds, beta)
    if weights.sum() < _NOTHING:
        raise MetricFailed(
            "no feature is higher of right captions than of wrong ones: expected captions that "
            "agree with their references more than those that they are preferred to"
        )
    return weights, float(_shares(kinds) @ ((right + wrong) @ weights)) / 2


def counted(given: Sequence[Contrast]) -> dict[str, int]:
    """How many contrasts there are of each kind."""
    return dict(Counter(each.kind for each in given))


def chosen(
    images: Images,
    further: Iterable[Contrast],
    recipe: Recipe = Recipe(),
    stems: str = ENGLISH,
) -> list[Contrast]:
    """The contrasts that are learned from."""
    made = contrasts.make(contrasts.Corpus.of(images, stems), recipe.seed)
    return contrasts.draw([*made, *further], recipe.most, recipe.seed)


def measured(
    given: Sequence[Contrast],
    known: Language,
    jvm: Jvm,
    *,
    score: Score,
    tokenizer: Tokenizer,
    progress: Progress = ignore_progress,
) -> tuple[Floats, Floats]:
    """The features of the right and of the wrong captions."""
    captions = [each.right for each in given] + [each.wrong for each in given]
    sets = dict.fromkeys(each.references for each in given)
    places = {each: place for place, each in enumerate(sets)}
    rows = np.array([places[each.references] for each in given] * 2, np.int64)
    prepared = references.from_tokens(list(sets), tokenizer)
    task = ScoringInput(
        captions, rows, prepared, jvm, progress=progress, tokenizer=tokenizer, others=score
    )
    found = features.measure(task, known)
    return found[: len(given)], found[len(given) :]


def fit(differences: Floats, kinds: NDArray[Any], beta: float) -> Floats:
    """The weights of features, from the differences of right and wrong captions."""
    spread = differences.std(axis=0)
    scale = np.where(spread > 0, spread, 1)
    scaled, shares = differences / scale, _shares(kinds)

    def loss(weights: Floats) -> tuple[float, Floats]:
        margins = scaled @ weights
        slopes = shares * 0.5 * (1 - np.tanh(margins / 2))
        value = shares @ np.logaddexp(0, -margins) + beta / 2 * (weights @ weights)
        return float(value), beta * weights - slopes @ scaled

    found = minimize(
        loss,
        np.full(len(scale), 0.1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * len(scale),
        options={"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-9},
    )
    weights: Floats = found.x / scale
    return weights


def _shares(kinds: NDArray[Any]) -> Floats:
    """What each contrast counts for: all kinds the same, 1 together."""
    _, places, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    shares: Floats = 1 / counts[places] / len(counts)
    return shares
