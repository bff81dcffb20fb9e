"""A small network that tells captions of people from those of machines, in numpy alone.

It has hidden layers with ReLU, and softmax over {machine, human}; without a hidden layer it is
logistic regression. The loss is cross-entropy + beta / 2 * (sum of squared weights), as TensorFlow
has an L2 loss. Weights have Glorot's uniform start and are trained by Adam. On one machine the same
seed gives the same numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from workers.metrics.family import Floats
from workers.metrics.model_files import Tensors

Layers = Sequence[tuple[Floats, Floats]]  # weights (in, out) and biases (out)

_CLASSES = 2  # machine, human
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8  # Adam's, as its authors have them


@dataclass(frozen=True)
class NetworkRecipe:
    """The paper's settings, except for the learning rate, which is 0.25 there, and beta, which the
    paper does not give. Training ends early after `patience` epochs without a better one.
    """

    hidden: tuple[int, ...] = (72, 72)
    learning_rate: float = 1e-3
    beta: float = 1e-2
    batch: int = 75
    epochs: int = 500
    patience: int = 30
    seed: int = 0

    @classmethod
    def with_defaults(cls, **settings: Any) -> Self:
        """A recipe of these settings; those that are None are the usual ones."""
        return cls(**{name: value for name, value in settings.items() if value is not None})


@dataclass(frozen=True)
class Network:
    layers: Layers

    def __call__(self, values: Floats) -> Floats:
        """The probability that a person wrote it, for each row of features. No matrix product is
        used, because its last bits depend on the number of its rows.
        """
        for weights, biases in self.layers[:-1]:
            values = np.maximum(np.einsum("ij,jk->ik", values, weights) + biases, 0.0)
        weights, biases = self.layers[-1]
        logits = np.einsum("ij,jk->ik", values, weights) + biases
        return sigmoid(logits[:, 1] - logits[:, 0])

    def tensors(self) -> Tensors:
        return {
            f"layers/{place}/{name}": values
            for place, layer in enumerate(self.layers)
            for name, values in zip(("weights", "biases"), layer, strict=True)
        }


def restored(tensors: Tensors, inputs: int) -> Network:
    """Take the layers out of `tensors`. Raises ValueError if they do not lead, one after another,
    from `inputs` features to two classes.
    """
    count = sum(name.startswith("layers/") for name in tensors) // 2
    found = [
        (tensors.pop(f"layers/{place}/weights"), tensors.pop(f"layers/{place}/biases"))
        for place in range(count)
    ]
    sizes = [inputs, *(biases.size for _, biases in found)]
    shapes = [each.shape for pair in found for each in pair]
    expected = [shape for above, below in pairwise(sizes) for shape in ((above, below), (below,))]
    if not found or sizes[-1] != _CLASSES or shapes != expected:
        raise ValueError(f"expected layers from {inputs} features to 2 classes, found {shapes}")
    return Network(found)


class NetworkTraining:
    """A network in training, and the watched captions that show how good it is. An epoch shows it
    every caption once, in batches.
    """

    def __init__(
        self, values: Floats, by_people: NDArray[np.bool_], watched: Floats, recipe: NetworkRecipe
    ) -> None:
        self._values, self._by_people, self._watched = values, by_people, watched
        self._rng = np.random.default_rng(recipe.seed)
        self._fitting = _Fitting(_start(values.shape[1], recipe.hidden, self._rng), recipe)
        self._batch = recipe.batch

    def epoch(self) -> float:
        """Train for one more epoch; returns its loss."""
        order = self._rng.permutation(len(self._values))
        loss = 0.0
        for start in range(0, len(order), self._batch):
            batch = order[start : start + self._batch]
            loss += self._fitting.step(self._values[batch], self._by_people[batch]) * len(batch)
        return loss / len(order)

    def watched(self) -> Floats:
        """The probabilities of the watched captions now."""
        return Network(self._fitting.layers)(self._watched)

    def learnt(self) -> Network:
        """The network as it is now; later epochs do not change it."""
        return Network(
            [(weights.copy(), biases.copy()) for weights, biases in self._fitting.layers]
        )


def _start(inputs: int, hidden: Sequence[int], rng: np.random.Generator) -> list[Floats]:
    """The first weights of each layer."""
    weights = []
    for above, below in pairwise((inputs, *hidden, _CLASSES)):
        limit = np.sqrt(6 / (above + below))
        weights.append(rng.uniform(-limit, limit, (above, below)))
    return weights


class _Fitting:
    """Layers as views of one array, so that Adam takes its step on all of them at once."""

    def __init__(self, weights: Sequence[Floats], recipe: NetworkRecipe) -> None:
        self._recipe = recipe
        size = sum(each.size + each.shape[1] for each in weights)
        self._parameters, self._gradient = np.zeros(size), np.zeros(size)
        self._mean, self._variance = np.zeros(size), np.zeros(size)
        self._steps = 0
        self.layers = _views(self._parameters, weights)
        self._slopes = _views(self._gradient, weights)
        for (layer, _), each in zip(self.layers, weights, strict=True):
            layer[:] = each

    def step(self, values: Floats, by_people: NDArray[np.bool_]) -> float:
        """Take Adam's step on one batch; returns the batch's loss before the step."""
        loss = self._slope(values, by_people)
        self._steps += 1
        self._mean += (1 - _FIRST) * (self._gradient - self._mean)
        self._variance += (1 - _SECOND) * (self._gradient**2 - self._variance)
        mean = self._mean / (1 - _FIRST**self._steps)
        variance = self._variance / (1 - _SECOND**self._steps)
        self._parameters -= self._recipe.learning_rate * mean / (np.sqrt(variance) + _TINY)
        return loss

    def _slope(self, values: Floats, by_people: NDArray[np.bool_]) -> float:
        """Write the loss's slope to the gradient; returns the loss."""
        seen = [values]
        for weights, biases in self.layers[:-1]:
            seen.append(np.maximum(seen[-1] @ weights + biases, 0.0))
        weights, biases = self.layers[-1]
        logits = seen[-1] @ weights + biases
        margins = np.where(by_people, 1.0, -1.0) * (logits[:, 1] - logits[:, 0])
        wrong = np.where(by_people, -1.0, 1.0) * sigmoid(-margins) / len(values)
        back = np.stack([-wrong, wrong], axis=1)
        loss = float(np.mean(np.logaddexp(0.0, -margins)))
        for place in reversed(range(len(self.layers))):
            weights, _ = self.layers[place]
            slope, of_biases = self._slopes[place]
            slope[:] = seen[place].T @ back + self._recipe.beta * weights
            of_biases[:] = back.sum(axis=0)
            loss += self._recipe.beta / 2 * float(np.sum(weights**2))
            if place:
                back = (back @ weights.T) * (seen[place] > 0)
        return loss


def sigmoid(values: Floats) -> Floats:
    """The logistic function, without overflow on either side."""
    falling = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, falling) / (1.0 + falling)


def _views(flat: Floats, weights: Sequence[Floats]) -> list[tuple[Floats, Floats]]:
    found, start = [], 0
    for each in weights:
        middle = start + each.size
        end = middle + each.shape[1]
        found.append((flat[start:middle].reshape(each.shape), flat[middle:end]))
        start = end
    return found
