"""What all learners share: they learn in epochs, and the best one is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from workers.metrics.family import Floats
from workers.progress import Progress, silent

Tensors = dict[str, NDArray[Any]]

CHANCE = float(np.log(2))
_LEAST = 1e-12  # of a probability: the logarithm of 0 is none


class Classifier(Protocol):
    """What was learnt: it tells captions of people from those of machines."""

    def __call__(self, values: Floats) -> Floats:
        """The probability that a person wrote it, for each row of features in [-1, 1]. A row's
        result is the same, whatever the other rows are.
        """

    def tensors(self) -> Tensors:
        """The classifier as a file keeps it."""


class Learning(Protocol):
    """A classifier in training, and the watched captions that show how good it is."""

    def epoch(self) -> float:
        """Train for one more epoch; returns its loss."""

    def watched(self) -> Floats:
        """The probabilities of the watched captions now."""

    def learnt(self) -> Classifier:
        """The classifier as it is now; later epochs do not change it."""


@dataclass(frozen=True)
class Trained:
    """The best epoch's classifier; of all epochs, from 0 (untrained), their `qualities`, the
    `losses` of training and those of captions that were `held_out`.
    """

    classifier: Classifier
    best_epoch: int
    qualities: Sequence[float]
    losses: Sequence[float]
    held_out: Sequence[float]


def train(
    learning: Learning,
    quality: Callable[[Floats], float],
    loss: Callable[[Floats], float],
    epochs: int,
    patience: int,
    *,
    progress: Progress = silent,
) -> Trained:
    """Train, and keep the epoch that `best` says, by quality and loss of the watched captions.
    Training ends early after `patience` epochs in which neither had a better value.
    """
    classifiers = [learning.learnt()]
    qualities, losses = [quality(learning.watched())], [float("nan")]
    held_out = [loss(learning.watched())]
    progress(0, epochs)
    for epoch in range(1, epochs + 1):
        losses.append(learning.epoch())
        watched = learning.watched()
        qualities.append(quality(watched))
        held_out.append(loss(watched))
        classifiers.append(learning.learnt())
        progress(epoch, epochs)
        latest = max(int(np.argmax(qualities)), int(np.argmin(held_out)))
        if epoch - latest >= patience:
            break
    chosen = best(qualities, held_out)
    return Trained(classifiers[chosen], chosen, qualities, losses, held_out)


def best(qualities: Sequence[float], held_out: Sequence[float]) -> int:
    """The epoch of the highest quality, the first if several are equal, among those that tell
    captions of people from those of machines at least half as well as the best one: whose loss is
    nearer to the lowest one than to that of chance. A quality of ranks alone is as high for scores
    that differ in their eighth digit.
    """
    lowest = min(held_out)
    allowed = (lowest + max(CHANCE, lowest)) / 2
    found = [epoch for epoch, loss in enumerate(held_out) if loss <= allowed]
    return max(found, key=lambda epoch: qualities[epoch])


def cross_entropy(scores: Floats, by_people: NDArray[np.bool_]) -> float:
    """Of probabilities that people wrote the captions; `CHANCE` is that of a half for each."""
    likely = np.where(by_people, scores, 1 - scores)
    return float(-np.mean(np.log(np.maximum(likely, _LEAST))))


def sigmoid(values: Floats) -> Floats:
    """The logistic function, without overflow on either side."""
    falling = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, falling) / (1.0 + falling)
