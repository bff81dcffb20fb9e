"""Does the learned metric agree with people better than the features that it is made of? What
LEARNED.md says, and the shipped model's card of people and of distractors, computed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parity import accord, learned_sets, systems
from parity.learned_sets import Judged
from parity.resampling import Resampled, interval
from workers.bench.judging import distractors
from workers.bench.learned import nneval_fitting, training_sets
from workers.bench.learned.nneval_fitting import FittingData, NetworkRecipe, WatchedCaptions
from workers.bench.learned.training_sets import CaptionerOutputs, NNEvalExamples, identify_photo
from workers.metrics import frequencies, postgen, references
from workers.metrics.frequencies import DocumentFrequencies
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import features, nneval
from workers.metrics.learned.features import FeatureTools

FEATURES = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "cider_d", "meteor", "wmd")
RECIPES = {
    "network": NetworkRecipe(),
    "network, learning rate 0.25": NetworkRecipe(learning_rate=0.25),
}
PUBLISHED = {  # NNEval's own, of 5816, 2513, 4594, 2619, 5811 and 2624 pairs of Flickr8k and 30k
    "replace-person": 90.2,
    "replace-scene": 91.8,
    "share-person": 95.1,
    "share-scene": 94.0,
    "just-person": 85.8,
    "just-scene": 94.7,
}
Lines = dict[tuple[str, str], list[str]]  # cells by table and metric


def shipped_scores(
    captions: Sequence[str], sets: Sequence[tuple[str, ...]], jvm: Jvm
) -> dict[str, np.ndarray]:
    """Of captions by the shipped model and by each of its features."""
    shipped = nneval.load_shipped_nneval()
    tools = FeatureTools(postgen.score_family, jvm, shipped.frequencies)
    names = list(shipped.features)
    values = features.measure_texts(names, captions, sets, "ptb", tools).values
    learned = shipped.classifier(shipped.scaling(values))
    return {"nneval": learned, **dict(zip(names, values.T, strict=True))}


def solved_tasks(
    images: Sequence[Sequence[str]], most: int, jvm: Jvm
) -> dict[str, dict[str, float]]:
    """By task and metric, the share of pairs of which the right caption has the higher score; so
    many pairs of each task.
    """
    by_task: dict[str, list] = {}
    for pair in distractors.make_distractors(images, 0):
        by_task.setdefault(pair.category, []).append(pair)
    kept = []
    for pairs in by_task.values():
        drawn = np.random.default_rng(0).permutation(len(pairs))[:most]
        kept += [pairs[place] for place in sorted(drawn)]
    sides = [(each.a, each.b) if each.preferred == "a" else (each.b, each.a) for each in kept]
    captions = [text for column in zip(*sides, strict=True) for text in column]
    scores = shipped_scores(captions, [tuple(each.references) for each in kept] * 2, jvm)
    solved = {name: accord.solved(*np.split(each, 2)) for name, each in scores.items()}
    tasks = np.array([each.category for each in kept])
    return {
        task: {name: float(each[tasks == task].mean()) for name, each in solved.items()}
        for task in by_task
    }


@dataclass(frozen=True)
class Sets:
    """With features: `values` (captions, features) of the training captions and of those judged."""

    training: NNEvalExamples
    judged: Mapping[str, Judged]
    values: Mapping[str, np.ndarray]


def prepared(data: Path, jvm: Jvm) -> Sets:
    judged = {"Expert": learned_sets.expert(data), "CrowdFlower": learned_sets.crowd(data)}
    photos = frozenset(identify_photo(image) for each in judged.values() for image in each.images)
    examples = _training(data, photos)
    vectors = {"vectors": learned_sets.vectors(data)}
    tools = FeatureTools(postgen.score_family, jvm, _frequencies(data, photos, jvm), vectors)
    values = {
        label: features.measure_texts(
            FEATURES, each.captions, each.reference_sets, "ptb", tools
        ).values
        for label, each in (("training", examples), *judged.items())
    }
    return Sets(examples, judged, values)


def _training(data: Path, judged: frozenset[str]) -> NNEvalExamples:
    """COCO and Flickr30k test images with 12 captioners each, without the judged photos."""
    parts = []
    for dataset, people in (
        ("mscoco", systems.coco(data, "test")),
        ("flickr30k", systems.flickr30k(data, "test_2016")),
    ):
        said = [systems.system(data, dataset, name).captions for name in systems.NAMES]
        captioners = [
            CaptionerOutputs(f"{dataset}/{name}", dict(zip(people, captions, strict=True)))
            for name, captions in zip(systems.NAMES, said, strict=True)
        ]
        kept = learned_sets.without(people, judged)
        parts.append(training_sets.build_examples(kept, captioners, seed=0))
    return NNEvalExamples(
        [image for part in parts for image in part.images],
        [caption for part in parts for caption in part.captions],
        [each for part in parts for each in part.reference_sets],
        np.concatenate([part.human for part in parts]),
    )


def _frequencies(data: Path, judged: frozenset[str], jvm: Jvm) -> DocumentFrequencies:
    """Of the training images and Flickr30k's training split, without the judged photos."""
    people = [
        systems.coco(data, "test"),
        *(systems.flickr30k(data, split) for split in ("test_2016", "train")),
    ]
    sets = [said for part in people for said in learned_sets.without(part, judged).values()]
    return frequencies.collect_frequencies(references.prepare_references(sets, "ptb", jvm))


def experiment(sets: Sets, draws: int = 1000) -> Lines:
    """Stopped on one half of the judged images, tested on the other; then the other way round. A
    metric's Kendall tau c on the tested half, its 95 % interval over images, the interval of its
    difference to the best single feature of that half, and the epoch.
    """
    halves = training_sets.split_images(sets.judged["Expert"].images, (1, 1), seed=0)
    found: Lines = {}
    for direction, (stopping, test) in enumerate((halves, halves[::-1]), 1):
        learned = dict(_learned(sets, stopping, test))
        for label, judged in sets.judged.items():
            kept = _of(judged.images, test)
            values = sets.values[label][kept]
            resampled = Resampled(np.array(judged.images)[kept], judged.ratings[kept], draws, 0)
            single = {name: resampled(values[:, n]) for n, name in enumerate(FEATURES)}
            best = max(single, key=lambda name: single[name][0])
            taus = {name: resampled(each(values)) for name, each in learned.items()} | single
            for name, each in taus.items():
                low, high = interval(each)
                cells = [f"{each[0]:.4f}", f"{low:.3f} … {high:.3f}"]
                low, high = interval(each - single[best])
                cells.append("" if name == best else f"{low:+.3f} … {high:+.3f}")
                epoch = f"epoch {learned[name].trained.best_epoch}" if name in learned else ""
                found[f"{label}, direction {direction}", name] = [*cells, epoch]
    return found


def _learned(
    sets: Sets, stopping: frozenset[str], test: frozenset[str]
) -> Iterator[tuple[str, nneval_fitting.FittedNetwork]]:
    images, human = sets.training.images, sets.training.human
    small = np.array([not image.startswith("COCO") for image in images])
    held_out = _of(images, training_sets.split_images(images, (9, 1), seed=0)[1])
    values = sets.values["training"]
    for name, kept in (("COCO and Flickr30k", np.ones_like(small)), ("Flickr30k", small)):
        seen, apart = kept & ~held_out, kept & held_out
        written = human[apart].astype(float)
        task = FittingData(
            FEATURES,
            values[seen],
            human[seen],
            WatchedCaptions(values[apart], np.arange(len(written)), written),
            _watched(sets, stopping),
            _watched(sets, test),
        )
        for what, recipe in RECIPES.items():
            yield f"{what}; {name}", nneval_fitting.fit_network(task, recipe)


def _watched(sets: Sets, images: frozenset[str]) -> WatchedCaptions:
    judged = sets.judged["Expert"]
    kept = _of(judged.images, images)
    ratings = judged.ratings[kept]
    places = np.repeat(np.arange(len(ratings)), ratings.shape[1])
    return WatchedCaptions(sets.values["Expert"][kept], places, ratings.ravel())


def _of(images: Sequence[str], chosen: frozenset[str]) -> np.ndarray:
    return np.array([image in chosen for image in images])
