"""Learn the metric from captions: weights that put right captions above wrong ones.

The loss is logistic in the difference of the two captions' sums, so that only contrasts count and
no caption is good or bad by itself. Every kind of contrast counts the same. No weight is negative.
The problem is convex, and its solution does not depend on where the search begins.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from workers.metrics import references
from workers.metrics.accord import contrasts, features, language
from workers.metrics.accord.contrasts import Contrast
from workers.metrics.accord.language import Images, Language
from workers.metrics.accord.model import Model
from workers.metrics.family import Floats, Score, Task
from workers.metrics.java.jvm import Jvm
from workers.metrics.tokens import Tokenizer
from workers.progress import Progress, silent


@dataclass(frozen=True)
class Recipe:
    """`beta`: the penalty on squared weights of standardised features, which is the largest within
    a standard error of the best on contrasts of other images. `most`: contrasts of each kind.
    """

    beta: float = 0.1
    most: int = 3000
    seed: int = 0


def train(
    images: Images,
    further: Iterable[Contrast],
    jvm: Jvm,
    recipe: Recipe = Recipe(),
    *,
    score: Score,
    tokenizer: Tokenizer,
    progress: Progress = silent,
    about: Mapping[str, Any] | None = None,
) -> Model:
    """Learn from images' captions, as tokens. `further` are contrasts that others made of them;
    `score` scores captions by any family.
    """
    known = language.learn(images, tokenizer)
    found = chosen(images, further, recipe)
    right, wrong = measured(found, known, jvm, score=score, tokenizer=tokenizer, progress=progress)
    kinds = np.array([each.kind for each in found])
    weights = fit(right - wrong, kinds, recipe.beta)
    shares = _shares(kinds)
    middle = float(shares @ ((right + wrong) @ weights)) / 2
    counted = {kind: int((kinds == kind).sum()) for kind in dict.fromkeys(kinds.tolist())}
    described = {"images": len(images), "contrasts": counted, "recipe": vars(recipe)}
    return Model(known, weights, middle, {**described, **(about or {})})


def chosen(
    images: Images, further: Iterable[Contrast], recipe: Recipe = Recipe()
) -> list[Contrast]:
    """The contrasts that are learned from."""
    made = contrasts.make(contrasts.Corpus.of(images), recipe.seed)
    return contrasts.draw([*made, *further], recipe.most, recipe.seed)


def measured(
    given: Sequence[Contrast],
    known: Language,
    jvm: Jvm,
    *,
    score: Score,
    tokenizer: Tokenizer,
    progress: Progress = silent,
) -> tuple[Floats, Floats]:
    """The features of the right and of the wrong captions."""
    captions = [each.right for each in given] + [each.wrong for each in given]
    sets = dict.fromkeys(each.references for each in given)
    places = {each: place for place, each in enumerate(sets)}
    rows = np.array([places[each.references] for each in given] * 2, np.int64)
    prepared = references.from_tokens(list(sets), tokenizer)
    task = Task(captions, rows, prepared, jvm, progress=progress, tokenizer=tokenizer, others=score)
    found = features.measure(task, known)
    return found[: len(given)], found[len(given) :]


def fit(differences: Floats, kinds: NDArray[np.str_], beta: float) -> Floats:
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


def _shares(kinds: NDArray[np.str_]) -> Floats:
    """What each contrast counts for: all kinds the same, 1 together."""
    _, places, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    shares: Floats = 1 / counts[places] / len(counts)
    return shares
