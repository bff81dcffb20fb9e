"""Gradient-boosted trees that tell captions of people from those of machines, in numpy alone.

Each tree is fitted to the slopes and curvatures of cross-entropy + beta / 2 * (sum of its squared
leaves), and its leaves take Newton's step times the learning rate. The first odds are even, because
there are as many captions of people as of machines. A feature is cut at 255 places at most, which
are quantiles if it has more values. Nothing is drawn at random.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.metrics.family import Floats
from workers.metrics.learned.epochs import Tensors, sigmoid
from workers.metrics.ngrams import Ints

_CUTS = 255
_NOWHERE = 1.0  # no feature is above it: all go left


@dataclass(frozen=True)
class Recipe:
    """Settings of the learner. An epoch adds a tree of `depth` questions; a leaf has at least
    `smallest` captions. The seed is that of the captions that are drawn.
    """

    depth: int = 3
    smallest: int = 20
    learning_rate: float = 0.1
    beta: float = 1.0
    epochs: int = 500
    patience: int = 30
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees: `features` and `thresholds` (trees, 2^depth - 1), `leaves` (trees, 2^depth) in log
    odds. After question n comes question 2n + 1, or 2n + 2 if the feature is above the threshold.
    """

    features: Ints
    thresholds: Floats
    leaves: Floats

    @classmethod
    def none(cls, depth: int) -> "Trees":
        questions = 2**depth - 1
        empty = np.zeros((0, questions))
        return cls(empty.astype(np.int64), empty, np.zeros((0, questions + 1)))

    def __call__(self, values: Floats) -> Floats:
        return sigmoid(self.odds(values))

    def odds(self, values: Floats) -> Floats:
        """The logarithm of the odds that a person wrote each caption."""
        found = np.zeros(len(values))
        for features, thresholds, leaves in zip(
            self.features, self.thresholds, self.leaves, strict=True
        ):
            found += leaves[_leaf(features, thresholds, values)]
        return found

    def tensors(self) -> Tensors:
        return {f"trees/{name}": values for name, values in vars(self).items()}

    def and_one(self, features: Ints, thresholds: Floats, leaves: Floats) -> "Trees":
        more = (features, thresholds, leaves)
        return Trees(*(np.vstack(each) for each in zip(vars(self).values(), more, strict=True)))


def restored(tensors: Tensors, inputs: int) -> Trees:
    """Take the trees' tensors out of `tensors`. Raises ValueError if they are not trees of `inputs`
    features.
    """
    names = ("trees/features", "trees/thresholds", "trees/leaves")
    features, thresholds, leaves = (tensors.pop(name) for name in names)
    trees, width = leaves.shape if leaves.ndim == 2 else (0, 0)
    if width < 2 or width & (width - 1):
        raise ValueError(f"expected 2, 4, 8 … leaves of each tree, found {leaves.shape}")
    if not features.shape == thresholds.shape == (trees, width - 1):
        raise ValueError(
            f"expected {trees} trees of {width - 1} questions, found {features.shape} and "
            f"{thresholds.shape}"
        )
    if features.min(initial=0) < 0 or features.max(initial=0) >= inputs:
        raise ValueError(
            f"expected questions about {inputs} features, found {features.min()} to "
            f"{features.max()}"
        )
    return Trees(features, thresholds, leaves)


# scikit-learn's HistGradientBoosting makes the same trees (probabilities are equal to 4e-9), 3 to 9
# times as fast on one thread. It would save 65 lines, but adds 59 MB and a second of import, and
# what our files keep of trees is private in it.
class Learning:
    def __init__(
        self, values: Floats, by_people: NDArray[np.bool_], watched: Floats, recipe: Recipe
    ) -> None:
        self._recipe = recipe
        self._values, self._watched = values, watched
        self._human = by_people.astype(np.float64)
        self._odds, self._watched_odds = np.zeros(len(values)), np.zeros(len(watched))
        self._cuts = [_cuts(column) for column in values.T]
        pairs = zip(self._cuts, values.T, strict=True)  # a value is at most the cut of its bin
        self._bins = np.stack([np.searchsorted(cuts, column) for cuts, column in pairs], axis=1)
        self._trees = Trees.none(recipe.depth)

    def epoch(self) -> float:
        human = sigmoid(self._odds)
        tree = self._grown(human - self._human, human * (1 - human))
        self._trees = self._trees.and_one(*tree)
        features, thresholds, leaves = tree
        self._odds += leaves[_leaf(features, thresholds, self._values)]
        self._watched_odds += leaves[_leaf(features, thresholds, self._watched)]
        return float(np.mean(np.logaddexp(0.0, self._odds) - self._human * self._odds))

    def watched(self) -> Floats:
        return sigmoid(self._watched_odds)

    def learnt(self) -> Trees:
        return self._trees

    def _grown(self, slopes: Floats, curvatures: Floats) -> tuple[Ints, Floats, Floats]:
        """A tree's features, thresholds and leaves."""
        depth = self._recipe.depth
        features = np.zeros(2**depth - 1, np.int64)
        thresholds = np.full(2**depth - 1, _NOWHERE)
        sums = np.stack([slopes, curvatures, np.ones_like(slopes)])
        nodes = np.zeros(len(slopes), np.int64)  # of a level, from left to right
        for level in range(depth):
            first = 2**level - 1
            for node, feature, cut in self._questions(nodes, 2**level, sums):
                features[first + node], thresholds[first + node] = feature, self._cuts[feature][cut]
            nodes = _next(features, thresholds, first + nodes, self._values) - (2 * first + 1)
        down, bent = (np.bincount(nodes, each, 2**depth) for each in (slopes, curvatures))
        steps = np.divide(-down, bent + self._recipe.beta, out=np.zeros_like(down), where=bent > 0)
        return features, thresholds, self._recipe.learning_rate * steps

    def _questions(self, nodes: Ints, many: int, sums: Floats) -> Iterator[tuple[int, int, int]]:
        """Node, feature and cut of a level's questions that lower the loss: the best one of each
        node, the first if several are equal.
        """
        left, whole = self._on_the_left(nodes, many, sums)
        right = whole - left
        gains = self._worth(left) + self._worth(right) - self._worth(whole)
        gains[np.minimum(left[2], right[2]) < self._recipe.smallest] = 0
        best = gains.reshape(many, -1).argmax(axis=1)
        for node, place in enumerate(best.tolist()):
            feature, cut = divmod(place, gains.shape[2])
            if gains[node, feature, cut] > 0:
                yield node, feature, cut

    def _on_the_left(self, nodes: Ints, many: int, sums: Floats) -> tuple[Floats, Floats]:
        """The sums of slopes, curvatures and captions: up to each cut (3, nodes, features, cuts),
        and in all (3, nodes, 1, 1).
        """
        inputs, width = self._bins.shape[1], max(1, *map(len, self._cuts)) + 1
        places = (nodes[:, None] * inputs + np.arange(inputs)) * width + self._bins
        size = many * inputs * width
        counted = [np.bincount(places.ravel(), np.repeat(each, inputs), size) for each in sums]
        found = np.stack(counted).reshape(-1, many, inputs, width).cumsum(axis=3)
        return found[..., :-1], found[:, :, :1, -1:]

    def _worth(self, sums: Floats) -> Floats:
        """Twice the amount by which a leaf lowers the loss."""
        down, bent, _ = sums
        worth: Floats = np.divide(
            down**2, bent + self._recipe.beta, out=np.zeros_like(down), where=bent > 0
        )
        return worth


def _cuts(column: Floats) -> Floats:
    """The cuts of a feature, in the middle between its values."""
    distinct = np.unique(column)
    if len(distinct) <= _CUTS + 1:
        return (distinct[1:] + distinct[:-1]) / 2
    shares = np.linspace(0, 1, _CUTS + 2)[1:-1]
    return np.unique(np.quantile(column, shares, method="midpoint"))


def _leaf(features: Ints, thresholds: Floats, values: Floats) -> Ints:
    questions = len(features)
    nodes = np.zeros(len(values), np.int64)
    for _ in range(questions.bit_length()):
        nodes = _next(features, thresholds, nodes, values)
    return nodes - questions


def _next(features: Ints, thresholds: Floats, nodes: Ints, values: Floats) -> Ints:
    above = values[np.arange(len(values)), features[nodes]] > thresholds[nodes]
    return 2 * nodes + 1 + above
