"""What all learners share: they learn in epochs, of which the best is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from workers.metrics.family import Floats
from workers.progress import Progress, silent

Tensors = dict[str, NDArray[Any]]


class Classifier(Protocol):
    """What was learnt."""

    def __call__(self, values: Floats) -> Floats:
        """The probability that a person wrote it, for each row of features in [-1, 1]. Row by row
        the same, whatever rows stand beside it.
        """

    def tensors(self) -> Tensors:
        """As a file keeps it."""


class Learning(Protocol):
    """A classifier in the making, and the captions that say how good it is."""

    def epoch(self) -> float:
        """One more; its loss."""

    def watched(self) -> Floats:
        """What it says of those captions now."""

    def learnt(self) -> Classifier:
        """What it is now; later epochs do not change it."""


@dataclass(frozen=True)
class Trained:
    """The best epoch's; `qualities` and `losses` of all, from 0, the untrained one."""

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
    """Of all epochs the one is kept whose watched captions have the highest quality, the first of
    equals; so many epochs without a better one (`patience`) end it early.
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
    """Without overflow on either side."""
    falling = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, falling) / (1.0 + falling)
