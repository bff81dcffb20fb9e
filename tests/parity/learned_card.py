"""What the card of the shipped learned metric says, computed: its agreement with people's ratings
of images that did not stop its training, people beside captioners, exact matches, distractors.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from parity import learned_sets, systems
from parity.learned import Resampled, interval
from workers.bench.judging import distractors
from workers.bench.learned import training_sets
from workers.metrics import postgen
from workers.metrics.learned.features import FeatureTools
from workers.metrics.learned.nneval import NNEvalModel

_IMAGES = 1000  # of each set of captioners: the first
_PAIRS = {"COCO": 700, "Flickr30k": 400}  # of each category
_APART = (slice(0, 4), slice(4, 5), slice(5, 6))  # features as they are kept
NNEVAL = "nneval"


class Bench:
    """Scores of captions by the model and by each of its features."""

    def __init__(self, model: NNEvalModel, data: Path, keep: Path, jvm) -> None:
        self.data = data
        self._model, self._keep = model, keep
        self._tools = FeatureTools(postgen.score_family, jvm, model.frequencies)

    def __call__(
        self, label: str, captions: Sequence[str], sets: Sequence[tuple[str, ...]]
    ) -> dict[str, np.ndarray]:
        names = self._model.features
        values = np.concatenate(
            [
                learned_sets.measured(
                    list(names[part]), captions, sets, self._tools, self._keep, label
                )
                for part in _APART
            ],
            axis=1,
        )
        learned = self._model.classifier(self._model.scaling(values))
        return {NNEVAL: learned, **dict(zip(names, values.T, strict=True))}


def agreement(bench: Bench) -> list[str]:
    """Kendall's tau c on the half of the judged images that did not stop the training."""
    found = ["| | Expert | less it | CrowdFlower | less it |", "|---|---|---|---|---|"]
    columns = []
    for label, judged in (
        ("Expert", learned_sets.expert(bench.data)),
        ("CrowdFlower", learned_sets.crowd(bench.data)),
    ):
        _, test = training_sets.split_images(judged.images, (1, 1), seed=0)
        kept = np.array([image in test for image in judged.images])
        images = [image for image in judged.images if image in test]
        resampled = Resampled(images, judged.ratings[kept], 1000, seed=0)
        scores = bench(f"card-{label}", judged.captions, judged.reference_sets)
        columns.append({name: resampled(each[kept]) for name, each in scores.items()})
    for name in columns[0]:
        cells = []
        for taus in columns:
            low, high = interval(taus[name])
            cells.append(f"{taus[name][0]:.3f} ({low:.3f} … {high:.3f})")
            low, high = interval(taus[NNEVAL] - taus[name])
            cells.append("" if name == NNEVAL else f"{low:+.3f} … {high:+.3f}")
        found.append(f"| {name} | {' | '.join(cells)} |")
    return found


def people(bench: Bench) -> list[str]:
    """A person's caption beside those of twelve captioners of the same images, all against the
    other four references; and the person's caption against all five, of which it is one.
    """
    found = [
        "| images | people | best captioner | below people | itself a reference | then higher |",
        "|---|---|---|---|---|---|",
    ]
    for dataset in systems.DATASETS:
        refs = [tuple(image) for image in systems.raw(bench.data, dataset)][:_IMAGES]
        others = [image[1:] for image in refs]
        own = [image[0] for image in refs]
        said = [own]
        for name in systems.NAMES:
            path = bench.data / "systems" / f"{dataset}_{name}" / "generated_captions.txt.gz"
            said.append(systems.lines(path)[:_IMAGES])
        captions = [caption for each in said for caption in each]
        scores = bench(f"card-{dataset}", captions, others * len(said))[NNEVAL]
        human, *machines = scores.reshape(len(said), -1)
        exact = bench(f"card-exact-{dataset}", own, refs)[NNEVAL]
        means = [each.mean() for each in machines]
        below = sum(human.mean() > mean for mean in means)
        found.append(
            f"| {dataset} | {human.mean():.3f} | {max(means):.3f} | {below} of {len(means)} | "
            f"{exact.mean():.3f} | {np.mean(exact > human):.1%} of images |"
        )
    return found


PUBLISHED = {  # NNEval's own, of 5816, 2513, 4594, 2619, 5811 and 2624 pairs of Flickr8k and 30k
    "replace-person": 90.2,
    "replace-scene": 91.8,
    "share-person": 95.1,
    "share-scene": 94.0,
    "just-person": 85.8,
    "just-scene": 94.7,
}


def tasks(bench: Bench) -> list[str]:
    """The share of pairs of which the right caption has the higher score; ties count half."""
    sets = {
        "COCO": list(learned_sets.coco(bench.data, "test").values()),
        "Flickr30k": list(learned_sets.flickr30k(bench.data, "test_2016").values()),
    }
    right = {label: _right(bench, label, images) for label, images in sets.items()}
    names = (NNEVAL, "cider_d", "meteor", "bleu_1")
    head = [f"{label}: {name}" for label in right for name in names]
    found = [f"| | {' | '.join(head)} | published |", "|---" * (len(head) + 2) + "|"]
    for task, published in PUBLISHED.items():
        cells = [f"{100 * each[task][name]:.1f}" for each in right.values() for name in names]
        found.append(f"| {task} | {' | '.join(cells)} | {published} |")
    means = [
        f"{100 * np.mean([each[task][name] for task in PUBLISHED]):.1f}"
        for each in right.values()
        for name in names
    ]
    return [*found, f"| average | {' | '.join(means)} | {np.mean(list(PUBLISHED.values())):.1f} |"]


def _right(bench: Bench, label: str, images) -> Mapping[str, Mapping[str, float]]:
    by_task: dict[str, list] = {}
    for pair in distractors.make_distractors(images, 0):
        by_task.setdefault(pair.category, []).append(pair)
    found = {}
    for task, pairs in by_task.items():
        drawn = np.random.default_rng(0).permutation(len(pairs))[: _PAIRS[label]]
        kept = [pairs[place] for place in sorted(drawn)]
        captions = [text for pair in kept for text in _right_first(pair)]
        sets = [tuple(pair.references) for pair in kept for _ in "ab"]
        scores = bench(f"card-{label}-{task}", captions, sets)
        found[task] = {name: _above(each[::2], each[1::2]) for name, each in scores.items()}
    return found


def _right_first(pair) -> tuple[str, str]:
    return (pair.a, pair.b) if pair.preferred == "a" else (pair.b, pair.a)


def _above(right: np.ndarray, wrong: np.ndarray) -> float:
    equal = np.abs(right - wrong) <= 1e-10
    return float(np.mean(np.where(equal, 0.5, right > wrong)))
