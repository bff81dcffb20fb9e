"""What all learners share: they learn in epochs, and the best one is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from workers.metrics.family import Floats
from workers.progress import Progress, silent

Tensors = dict[str, NDArray[Any]]


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
    """The best epoch's classifier; `qualities` and `losses` of all epochs, from 0 (untrained)."""

    classifier: Classifier
    best_epoch: int
    qualities: Sequence[float]
    losses: Sequence[float]


def train(
    learning: Learning,
    quality: Callable[[Floats], float],
    epochs: int,
    patience: int,
    *,
    progress: Progress = silent,
) -> Trained:
    """Train, and keep the epoch whose watched captions have the highest quality, the first if
    several are equal. Training ends early after `patience` epochs without a better one.
    """
    best, best_epoch, kept = quality(learning.watched()), 0, learning.learnt()
    qualities, losses = [best], [float("nan")]
    progress(0, epochs)
    for epoch in range(1, epochs + 1):
        losses.append(learning.epoch())
        qualities.append(quality(learning.watched()))
        if qualities[-1] > best:
            best, best_epoch, kept = qualities[-1], epoch, learning.learnt()
        progress(epoch, epochs)
        if epoch - best_epoch >= patience:
            break
    return Trained(kept, best_epoch, qualities, losses)


def sigmoid(values: Floats) -> Floats:
    """The logistic function, without overflow on either side."""
    falling = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, falling) / (1.0 + falling)
