"""Training of a network in epochs, of which the best one is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.metrics.family import Floats
from workers.metrics.learned.network import Network, NetworkTraining
from workers.progress import Progress, ignore_progress

CHANCE = float(np.log(2))
_LEAST = 1e-12  # of a probability: the logarithm of 0 is none


@dataclass(frozen=True)
class Trained:
    """The best epoch's classifier; of all epochs, from 0 (untrained), their `qualities`, the
    `losses` of training and those of captions that were `held_out`.
    """

    classifier: Network
    best_epoch: int
    qualities: Sequence[float]
    losses: Sequence[float]
    held_out: Sequence[float]


def train(
    training: NetworkTraining,
    quality: Callable[[Floats], float],
    loss: Callable[[Floats], float],
    epochs: int,
    patience: int,
    *,
    progress: Progress = ignore_progress,
) -> Trained:
    """Train, and keep the epoch that `best` says, by quality and loss of the watched captions.
    Training ends early after `patience` epochs in which neither had a better value.
    """
    classifiers = [training.learnt()]
    qualities, losses = [quality(training.watched())], [float("nan")]
    held_out = [loss(training.watched())]
    progress(0, epochs)
    for epoch in range(1, epochs + 1):
        losses.append(training.epoch())
        watched = training.watched()
        qualities.append(quality(watched))
        held_out.append(loss(watched))
        classifiers.append(training.learnt())
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
