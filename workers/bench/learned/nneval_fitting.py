"""Training of NNEval's network in epochs, of which the best one is kept.

The loss is cross-entropy + beta / 2 * (sum of squared weights), as TensorFlow has an L2 loss.
Weights have Glorot's uniform start and are trained by Adam. On one machine the same seed gives the
same numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from workers.metrics.family import Floats
from workers.metrics.learned.features import FeatureScaling
from workers.metrics.learned.network import CLASSES, HumanClassifier, sigmoid
from workers.metrics.ngrams import Ints
from workers.progress import Progress, ignore_progress

Report = Callable[[str, int, int], None]  # what is being done, how much of it, of how much

CHANCE = float(np.log(2))
_LEAST = 1e-12  # of a probability: the logarithm of 0 is none
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8  # Adam's, as its authors have them


def ignore_report(what: str, done: int, total: int) -> None:
    """A Report that does nothing."""


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


class NetworkTraining:
    """A network in training, beside watched captions; an epoch shows it every caption once."""

    def __init__(
        self, values: Floats, by_people: NDArray[np.bool_], watched: Floats, recipe: NetworkRecipe
    ) -> None:
        self._values, self._by_people, self._watched = values, by_people, watched
        self._rng = np.random.default_rng(recipe.seed)
        self._fitting = _NetworkFitting(_start(values.shape[1], recipe.hidden, self._rng), recipe)
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
        return HumanClassifier(self._fitting.layers)(self._watched)

    def learnt(self) -> HumanClassifier:
        """The network as it is now; later epochs do not change it."""
        return HumanClassifier(
            [(weights.copy(), biases.copy()) for weights, biases in self._fitting.layers]
        )


def _start(inputs: int, hidden: Sequence[int], rng: np.random.Generator) -> list[Floats]:
    """The first weights of each layer."""
    weights = []
    for above, below in pairwise((inputs, *hidden, CLASSES)):
        limit = np.sqrt(6 / (above + below))
        weights.append(rng.uniform(-limit, limit, (above, below)))
    return weights


class _NetworkFitting:
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


def _views(flat: Floats, weights: Sequence[Floats]) -> list[tuple[Floats, Floats]]:
    found, start = [], 0
    for each in weights:
        middle = start + each.size
        end = middle + each.shape[1]
        found.append((flat[start:middle].reshape(each.shape), flat[middle:end]))
        start = end
    return found


@dataclass(frozen=True)
class TrainedNetwork:
    """The best epoch's classifier; of all epochs, from 0 (untrained), how good they were."""

    classifier: HumanClassifier
    best_epoch: int
    qualities: Sequence[float]
    losses: Sequence[float]
    held_out: Sequence[float]


def train_epochs(
    training: NetworkTraining,
    quality: Callable[[Floats], float],
    loss: Callable[[Floats], float],
    epochs: int,
    patience: int,
    *,
    progress: Progress = ignore_progress,
) -> TrainedNetwork:
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
    chosen = choose_epoch(qualities, held_out)
    return TrainedNetwork(classifiers[chosen], chosen, qualities, losses, held_out)


def choose_epoch(qualities: Sequence[float], held_out: Sequence[float]) -> int:
    """The epoch of the highest quality, the first if several are equal, among those that tell
    captions of people from those of machines at least half as well as the best one: whose loss is
    nearer to the lowest one than to that of chance. A quality of ranks alone is as high for scores
    that differ in their eighth digit.
    """
    lowest = min(held_out)
    allowed = (lowest + max(CHANCE, lowest)) / 2
    found = [epoch for epoch, loss in enumerate(held_out) if loss <= allowed]
    return max(found, key=lambda epoch: qualities[epoch])


def compute_cross_entropy(scores: Floats, by_people: NDArray[np.bool_]) -> float:
    """Cross entropy of probabilities that people wrote the captions; `CHANCE`: all are a half."""
    likely = np.where(by_people, scores, 1 - scores)
    return float(-np.mean(np.log(np.maximum(likely, _LEAST))))


@dataclass(frozen=True, eq=False)
class WatchedCaptions:
    """Captions by their features, not scaled, and ratings that scores should agree with: ratings[i]
    is of caption captions[i]. If people and machines are told apart, a rating is 1 for people; with
    as many captions of each, Kendall's tau c is twice the area under the curve minus 1.
    """

    values: Floats
    captions: Ints
    ratings: Floats

    def agreement(self, scores: Floats) -> float:
        """Kendall's tau c; 0 if all scores are equal."""
        observed = scores[self.captions]
        if np.ptp(observed) == 0:
            return 0.0
        return float(stats.kendalltau(observed, self.ratings, variant="c").statistic)

    def of(self, features: Sequence[int]) -> "WatchedCaptions":
        return replace(self, values=self.values[:, features])


@dataclass(frozen=True, eq=False)
class FittingData:
    """Features (captions, features), who wrote each caption, where to stop, and where to test.
    `held_out`: captions of other images whose ratings say who wrote them.
    """

    names: Sequence[str]
    values: Floats
    human: NDArray[np.bool_]
    held_out: WatchedCaptions
    stopping: WatchedCaptions
    test: WatchedCaptions

    def of(self, features: Sequence[int]) -> "FittingData":
        return FittingData(
            [self.names[feature] for feature in features],
            self.values[:, features],
            self.human,
            self.held_out.of(features),
            self.stopping.of(features),
            self.test.of(features),
        )


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """A fitted metric. `stopping` and `test`: agreement with the ratings of watched captions."""

    scaling: FeatureScaling
    trained: TrainedNetwork
    stopping: float
    test: float

    def __call__(self, values: Floats) -> Floats:
        return self.trained.classifier(self.scaling(values))


@dataclass(frozen=True)
class AgreementRow:
    """One line of the tables."""

    what: str
    stopping: float
    test: float


def fit_network(
    task: FittingData,
    recipe: NetworkRecipe = NetworkRecipe(),
    *,
    report: Report = ignore_report,
    what: str = "training",
) -> FittedNetwork:
    scaling = FeatureScaling.of(task.values)
    watched = scaling(np.concatenate([task.stopping.values, task.held_out.values]))
    first = len(task.stopping.values)
    by_people = task.held_out.ratings > 0
    trained = train_epochs(
        NetworkTraining(scaling(task.values), task.human, watched, recipe),
        lambda scores: task.stopping.agreement(scores[:first]),
        lambda scores: compute_cross_entropy(scores[first:], by_people),
        recipe.epochs,
        recipe.patience,
        progress=lambda done, total: report(what, done, total),
    )
    tested = trained.classifier(scaling(task.test.values))
    best = trained.qualities[trained.best_epoch]
    return FittedNetwork(scaling, trained, best, task.test.agreement(tested))


def rate_single_features(task: FittingData) -> Iterator[AgreementRow]:
    """The agreement of each feature as a metric of its own."""
    for place, name in enumerate(task.names):
        found = [each.agreement(each.values[:, place]) for each in (task.stopping, task.test)]
        yield AgreementRow(name, *found)


def rate_left_out_features(
    task: FittingData,
    recipe: NetworkRecipe = NetworkRecipe(),
    *,
    report: Report = ignore_report,
) -> Iterator[AgreementRow]:
    """The agreement of the metric when it is trained anew without each feature."""
    everything = range(len(task.names))
    for place, name in enumerate(task.names if len(task.names) > 1 else ()):
        what = f"without {name}"
        rest = task.of([other for other in everything if other != place])
        fitted = fit_network(rest, recipe, report=report, what=what)
        yield AgreementRow(what, fitted.stopping, fitted.test)
