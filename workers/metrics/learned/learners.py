"""The learners, by name: they learn to tell captions of people from those of machines."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.metrics.family import Floats
from workers.metrics.learned import boosting, network
from workers.metrics.learned.epochs import Classifier, Learning, Tensors

Recipe = network.Recipe | boosting.Recipe

LEARNERS: Mapping[str, Recipe] = {
    "network": network.Recipe(),
    "logistic": network.Recipe(hidden=()),
    "boosting": boosting.Recipe(),
}
USUAL = LEARNERS["network"]


def recipe(
    learner: str,
    *,
    learning_rate: float | None = None,
    beta: float | None = None,
    epochs: int | None = None,
    seed: int = 0,
) -> Recipe:
    """The learner's own recipe, except for the values that are given."""
    given = {"learning_rate": learning_rate, "beta": beta, "epochs": epochs, "seed": seed}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(LEARNERS[learner], **changes)


def named(recipe: Recipe) -> str:
    if isinstance(recipe, boosting.Recipe):
        return "boosting"
    return "network" if recipe.hidden else "logistic"


def begin(
    recipe: Recipe, values: Floats, by_people: NDArray[np.bool_], watched: Floats
) -> Learning:
    """Begin to learn from features in [-1, 1] and who wrote the captions; `watched` are features of
    other captions.
    """
    if isinstance(recipe, boosting.Recipe):
        return boosting.Learning(values, by_people, watched, recipe)
    return network.Learning(values, by_people, watched, recipe)


def restored(tensors: Tensors, inputs: int) -> Classifier:
    """Take a classifier of `inputs` features out of `tensors`. Raises ValueError or KeyError if
    there is none.
    """
    if any(name.startswith("trees/") for name in tensors):
        return boosting.restored(tensors, inputs)
    return network.restored(tensors, inputs)
