"""A small network that tells captions of people from those of machines, in numpy alone.

Hidden layers with ReLU, softmax over {machine, human}; no hidden layer is logistic regression.
Cross-entropy + beta * (sum of squared weights), Glorot's uniform start, Adam. On one machine the
same numbers come from the same seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import Canceled
from workers.control import Progress, Stop, never, silent
from workers.metrics.family import Floats

Layers = Sequence[tuple[Floats, Floats]]  # weights (in, out) and biases (out)
Quality = Callable[[Layers], float]

_CLASSES = 2  # machine, human
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8  # of Adam, as its authors have them
PAPER_LEARNING_RATE = 0.25


@dataclass(frozen=True)
class Recipe:
    """The paper's, but for the learning rate, which is 0.25 there, and beta, which is not given.
    `patience`: so many epochs without a better one end it early.
    """

    hidden: tuple[int, ...] = (72, 72)
    learning_rate: float = 1e-3
    beta: float = 1e-2
    batch: int = 75
    epochs: int = 500
    patience: int = 30
    seed: int = 0


@dataclass(frozen=True)
class Trained:
    """The layers of the best epoch; `qualities` and `losses` of all, from 0, the untrained one."""

    layers: Layers
    best_epoch: int
    qualities: Sequence[float]
    losses: Sequence[float]


def human(layers: Layers, values: Floats) -> Floats:
    """The probability that a person wrote it, for each row of features. Row by row the same,
    whatever rows stand beside it (a matrix product's last bits depend on their number).
    """
    for weights, biases in layers[:-1]:
        values = np.maximum(np.einsum("ij,jk->ik", values, weights) + biases, 0.0)
    weights, biases = layers[-1]
    logits = np.einsum("ij,jk->ik", values, weights) + biases
    return _sigmoid(logits[:, 1] - logits[:, 0])


def train(
    values: Floats,
    by_people: NDArray[np.bool_],
    quality: Quality,
    recipe: Recipe = Recipe(),
    *,
    progress: Progress = silent,
    stop: Stop = never,
) -> Trained:
    """From features in [-1, 1] and who wrote the captions. Of all epochs the one of the highest
    quality is kept, the first of equals. Canceled where `stop` says so.
    """
    rng = np.random.default_rng(recipe.seed)
    fitting = _Fitting(_start(values.shape[1], recipe.hidden, rng), recipe)
    best, best_epoch, kept = -np.inf, 0, fitting.copied()
    qualities, losses = [], []
    for epoch in range(recipe.epochs + 1):
        order = rng.permutation(len(values)) if epoch else np.arange(0)
        loss = 0.0
        for start in range(0, len(order), recipe.batch):
            batch = order[start : start + recipe.batch]
            loss += fitting.step(values[batch], by_people[batch]) * len(batch)
        if stop():
            raise Canceled(f"stopped after {epoch} of {recipe.epochs} epochs")
        losses.append(loss / len(values) if epoch else float("nan"))
        qualities.append(quality(fitting.layers))
        if qualities[-1] > best:
            best, best_epoch, kept = qualities[-1], epoch, fitting.copied()
        progress(epoch, recipe.epochs)
        if epoch - best_epoch >= recipe.patience:
            break
    return Trained(kept, best_epoch, qualities, losses)


def _start(inputs: int, hidden: Sequence[int], rng: np.random.Generator) -> list[Floats]:
    """Weights of each layer."""
    weights = []
    for above, below in pairwise((inputs, *hidden, _CLASSES)):
        limit = np.sqrt(6 / (above + below))
        weights.append(rng.uniform(-limit, limit, (above, below)))
    return weights


class _Fitting:
    """Layers as views of one array, so that Adam takes its step on all of them at once."""

    def __init__(self, weights: Sequence[Floats], recipe: Recipe) -> None:
        self._recipe = recipe
        size = sum(each.size + each.shape[1] for each in weights)
        self._parameters, self._gradient = np.zeros(size), np.zeros(size)
        self._mean, self._variance = np.zeros(size), np.zeros(size)
        self._steps = 0
        self.layers = _views(self._parameters, weights)
        self._slopes = _views(self._gradient, weights)
        for (layer, _), each in zip(self.layers, weights, strict=True):
            layer[:] = each

    def copied(self) -> Layers:
        return [(weights.copy(), biases.copy()) for weights, biases in self.layers]

    def step(self, values: Floats, by_people: NDArray[np.bool_]) -> float:
        """Adam's, on one batch; the batch's loss before it."""
        loss = self._slope(values, by_people)
        self._steps += 1
        self._mean += (1 - _FIRST) * (self._gradient - self._mean)
        self._variance += (1 - _SECOND) * (self._gradient**2 - self._variance)
        mean = self._mean / (1 - _FIRST**self._steps)
        variance = self._variance / (1 - _SECOND**self._steps)
        self._parameters -= self._recipe.learning_rate * mean / (np.sqrt(variance) + _TINY)
        return loss

    def _slope(self, values: Floats, by_people: NDArray[np.bool_]) -> float:
        """Puts the loss's slope where it belongs."""
        seen = [values]
        for weights, biases in self.layers[:-1]:
            seen.append(np.maximum(seen[-1] @ weights + biases, 0.0))
        weights, biases = self.layers[-1]
        logits = seen[-1] @ weights + biases
        margins = np.where(by_people, 1.0, -1.0) * (logits[:, 1] - logits[:, 0])
        wrong = np.where(by_people, -1.0, 1.0) * _sigmoid(-margins) / len(values)
        back = np.stack([-wrong, wrong], axis=1)
        loss = float(np.mean(np.logaddexp(0.0, -margins)))
        for place in reversed(range(len(self.layers))):
            weights, _ = self.layers[place]
            slope, of_biases = self._slopes[place]
            slope[:] = seen[place].T @ back + 2 * self._recipe.beta * weights
            of_biases[:] = back.sum(axis=0)
            loss += self._recipe.beta * float(np.sum(weights**2))
            if place:
                back = (back @ weights.T) * (seen[place] > 0)
        return loss


def _views(flat: Floats, weights: Sequence[Floats]) -> list[tuple[Floats, Floats]]:
    found, start = [], 0
    for each in weights:
        middle = start + each.size
        end = middle + each.shape[1]
        found.append((flat[start:middle].reshape(each.shape), flat[middle:end]))
        start = end
    return found


def _sigmoid(values: Floats) -> Floats:
    """Without overflow on either side."""
    falling = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, falling) / (1.0 + falling)
