"""Does the learned metric agree with people better than the features that it is made of? What
`LEARNED.md` says, computed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parity import learned_sets
from parity.learned_sets import Judged
from workers.bench.learned import nneval_fitting, training_sets
from workers.bench.learned.nneval_fitting import (
    FittedNetwork,
    FittingData,
    NetworkRecipe,
    WatchedCaptions,
)
from workers.bench.learned.training_sets import NNEvalExamples, identify_photo
from workers.metrics import postgen
from workers.metrics.learned.features import FeatureTools

NAMES_OF_FEATURES = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "cider_d", "meteor", "wmd")
_APART = (NAMES_OF_FEATURES[:4], *((name,) for name in NAMES_OF_FEATURES[4:]))  # as they are kept
RECIPES = {
    "network": NetworkRecipe(),
    "network, learning rate 0.25": NetworkRecipe(learning_rate=0.25),
}
SETS = ("COCO and Flickr30k", "Flickr30k")


@dataclass(frozen=True)
class Line:
    """A metric's Kendall tau c on a half of the judged images, its 95 % interval over images, and
    the interval of its difference to the best single feature of that half.
    """

    direction: int
    judged: str
    metric: str
    value: float
    interval: tuple[float, float]
    difference: tuple[float, float]
    note: str = ""


class Resampled:
    """Tau c under resampling of images, exactly: the concordance of every two images is counted
    once, and weighted by how often each was drawn.
    """

    def __init__(self, images: Sequence[str], ratings: np.ndarray, draws: int, seed: int) -> None:
        levels, found = np.unique(ratings, return_inverse=True)
        self._levels = len(levels)
        self._images = np.unique(images, return_inverse=True)[1]
        self._counts = np.zeros((len(ratings), len(levels)))  # how often a caption got each level
        for column in found.reshape(ratings.shape).T:
            self._counts[np.arange(len(ratings)), column] += 1
        self._signs = np.sign(levels[:, None] - levels[None, :])
        count = self._images.max() + 1
        drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), draws)
        self._weights = np.vstack([np.ones(count), drawn])
        self._sizes = np.bincount(self._images) * ratings.shape[1]

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Of the images as they are, then of each draw; 0 where all scores are equal."""
        if np.ptp(scores) == 0:
            return np.zeros(len(self._weights))
        concordance = self._concordance(scores)
        agreeing = ((self._weights @ concordance) * self._weights).sum(axis=1)
        levels = min(self._levels, len(np.unique(scores)))
        return agreeing * levels / (levels - 1) / (self._weights @ self._sizes) ** 2

    def _concordance(self, scores: np.ndarray) -> np.ndarray:
        """Ordered pairs of observations that agree less those that do not, image by image."""
        count = len(self._sizes)
        found = np.zeros((count, count))
        higher = np.zeros((count, self._levels))  # captions of higher scores, by image and level
        np.add.at(higher, self._images, self._counts)
        lower = np.zeros_like(higher)
        order = np.argsort(scores, kind="stable")
        begins = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
        for equal in np.split(order, begins[1:]):
            for each in equal:
                higher[self._images[each]] -= self._counts[each]
            balance = lower - higher
            for each in equal:
                found[self._images[each]] += balance @ (self._signs.T @ self._counts[each])
            for each in equal:
                lower[self._images[each]] += self._counts[each]
        return found


@dataclass(frozen=True)
class Sets:
    """With features: `values` (captions, features) of the training captions and of those judged."""

    training: NNEvalExamples
    judged: Mapping[str, Judged]
    values: Mapping[str, np.ndarray]


def prepared(data: Path, keep: Path, jvm) -> Sets:
    judged = {"Expert": learned_sets.expert(data), "CrowdFlower": learned_sets.crowd(data)}
    photos = frozenset(identify_photo(image) for each in judged.values() for image in each.images)
    examples = learned_sets.training(data, photos, seed=0)
    training_sets.check_disjoint({"training": examples.images, "judged": judged["Expert"].images})
    vectors = {"vectors": learned_sets.vectors(data)}
    tools = FeatureTools(postgen.score_family, jvm, learned_sets.corpus(data, photos, jvm), vectors)
    values = {
        label: np.concatenate(
            [
                learned_sets.measured(
                    list(names), each.captions, each.reference_sets, tools, keep, label
                )
                for names in _APART
            ],
            axis=1,
        )
        for label, each in (("training", examples), *judged.items())
    }
    return Sets(examples, judged, values)


def experiment(sets: Sets, draws: int = 1000) -> list[Line]:
    """Stopped on one half of the judged images, tested on the other; then the other way round."""
    halves = training_sets.split_images(sets.judged["Expert"].images, (1, 1), seed=0)
    found = []
    for direction, (stopping, test) in enumerate((halves, halves[::-1]), 1):
        training_sets.check_disjoint({"stopping": stopping, "test": test})
        learned = _learned(sets, stopping, test)
        for label in sets.judged:
            found += _lines(direction, label, sets, test, learned, draws)
    return found


def watched(sets: Sets, label: str, images: frozenset[str]) -> WatchedCaptions:
    judged, kept = sets.judged[label], _of(sets.judged[label], images)
    ratings = judged.ratings[kept]
    places = np.repeat(np.arange(len(ratings)), ratings.shape[1])
    return WatchedCaptions(sets.values[label][kept], places, ratings.ravel())


def _who(sets: Sets, kept: np.ndarray) -> WatchedCaptions:
    """Captions of these rows, and who wrote them."""
    written = sets.training.human[kept].astype(float)
    return WatchedCaptions(sets.values["training"][kept], np.arange(len(written)), written)


def _of(judged: Judged, images: frozenset[str]) -> np.ndarray:
    return np.array([image in images for image in judged.images])


def _learned(
    sets: Sets, stopping: frozenset[str], test: frozenset[str]
) -> dict[str, FittedNetwork]:
    found = {}
    small = np.array([not image.startswith("COCO") for image in sets.training.images])
    _, apart = training_sets.split_images(sets.training.images, (9, 1), seed=0)
    held_out = np.array([image in apart for image in sets.training.images])
    for name, kept in zip(SETS, (np.full(len(small), fill_value=True), small), strict=True):
        task = FittingData(
            NAMES_OF_FEATURES,
            sets.values["training"][kept & ~held_out],
            sets.training.human[kept & ~held_out],
            _who(sets, kept & held_out),
            watched(sets, "Expert", stopping),
            watched(sets, "Expert", test),
        )
        found |= {
            f"{what}; {name}": nneval_fitting.fit_network(task, RECIPES[what]) for what in RECIPES
        }
    return found


def _lines(direction, label, sets, test, learned, draws) -> list[Line]:
    judged = sets.judged[label]
    kept = _of(judged, test)
    values = sets.values[label][kept]
    images = [image for image, there in zip(judged.images, kept, strict=True) if there]
    resampled = Resampled(images, judged.ratings[kept], draws, seed=0)
    single = {name: resampled(values[:, n]) for n, name in enumerate(NAMES_OF_FEATURES)}
    best = max(single.values(), key=lambda taus: taus[0])
    notes = {name: f"epoch {each.trained.best_epoch}" for name, each in learned.items()}
    everything = {name: resampled(each(values)) for name, each in learned.items()} | single
    return [
        Line(
            direction,
            label,
            name,
            taus[0],
            interval(taus),
            interval(taus - best),
            notes.get(name, ""),
        )
        for name, taus in everything.items()
    ]


def interval(taus: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(taus[1:], [0.025, 0.975])
    return float(low), float(high)


def markdown(found: Sequence[Line]) -> str:
    """A table for each set of judgements and direction."""
    parts = []
    for label, direction in dict.fromkeys((line.judged, line.direction) for line in found):
        parts += [
            f"### {label}, direction {direction}\n",
            "| metric | tau c | 95 % | less the best single feature, 95 % | |",
            "|---|---|---|---|---|",
        ]
        for line in found:
            if (line.judged, line.direction) == (label, direction):
                low, high = line.difference
                difference = "" if low == high == 0 else f"{low:+.3f} … {high:+.3f}"
                parts.append(
                    f"| {line.metric} | {line.value:.4f} | {line.interval[0]:.3f} … "
                    f"{line.interval[1]:.3f} | {difference} | {line.note} |"
                )
        parts.append("")
    return "\n".join(parts)
