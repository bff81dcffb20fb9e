"""From features to a metric: scale, train, stop at the best agreement, compare the features."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from workers.metrics.family import Floats
from workers.metrics.learned import epochs
from workers.metrics.learned.epochs import Trained
from workers.metrics.learned.features import Scaling
from workers.metrics.learned.network import Network, NetworkRecipe, NetworkTraining
from workers.metrics.ngrams import Ints

Report = Callable[[str, int, int], None]  # what is being done, how much of it, of how much


@dataclass(frozen=True, eq=False)
class Watched:
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

    def of(self, features: Sequence[int]) -> "Watched":
        return replace(self, values=self.values[:, features])


@dataclass(frozen=True, eq=False)
class Task:
    """Features (captions, features), who wrote each caption, where to stop, and where to test.
    `held_out`: captions of other images whose ratings say who wrote them.
    """

    names: Sequence[str]
    values: Floats
    human: NDArray[np.bool_]
    held_out: Watched
    stopping: Watched
    test: Watched

    def of(self, features: Sequence[int]) -> "Task":
        return Task(
            [self.names[feature] for feature in features],
            self.values[:, features],
            self.human,
            self.held_out.of(features),
            self.stopping.of(features),
            self.test.of(features),
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted metric. `stopping` and `test`: agreement with the ratings of watched captions."""

    scaling: Scaling
    trained: Trained
    stopping: float
    test: float

    @property
    def classifier(self) -> Network:
        return self.trained.classifier

    def __call__(self, values: Floats) -> Floats:
        return self.classifier(self.scaling(values))


@dataclass(frozen=True)
class Row:
    """One line of the tables."""

    what: str
    stopping: float
    test: float


def fit(
    task: Task,
    recipe: NetworkRecipe = NetworkRecipe(),
    *,
    report: Report = lambda _what, _done, _total: None,
    what: str = "training",
) -> Fitted:
    scaling = Scaling.of(task.values)
    watched = scaling(np.concatenate([task.stopping.values, task.held_out.values]))
    first = len(task.stopping.values)
    by_people = task.held_out.ratings > 0
    trained = epochs.train(
        NetworkTraining(scaling(task.values), task.human, watched, recipe),
        lambda scores: task.stopping.agreement(scores[:first]),
        lambda scores: epochs.cross_entropy(scores[first:], by_people),
        recipe.epochs,
        recipe.patience,
        progress=lambda done, total: report(what, done, total),
    )
    tested = trained.classifier(scaling(task.test.values))
    best = trained.qualities[trained.best_epoch]
    return Fitted(scaling, trained, best, task.test.agreement(tested))


def single_features(task: Task) -> Iterator[Row]:
    """The agreement of each feature as a metric of its own."""
    for place, name in enumerate(task.names):
        found = [each.agreement(each.values[:, place]) for each in (task.stopping, task.test)]
        yield Row(name, *found)


def one_left_out(
    task: Task,
    recipe: NetworkRecipe = NetworkRecipe(),
    *,
    report: Report = lambda _what, _done, _total: None,
) -> Iterator[Row]:
    """The agreement of the metric when it is trained anew without each feature."""
    everything = range(len(task.names))
    for place, name in enumerate(task.names if len(task.names) > 1 else ()):
        what = f"without {name}"
        rest = task.of([other for other in everything if other != place])
        fitted = fit(rest, recipe, report=report, what=what)
        yield Row(what, fitted.stopping, fitted.test)
