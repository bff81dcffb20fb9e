"""Trainings whose checkpoints the service evaluates, for `SIGNAL.md`.

Recipes differ in architecture, size, learning rate and amount of data, and are trained with several
seeds, to the end: 20 epochs, none of them left out for being worse. Each checkpoint goes through
the service: upload, captions, all scores.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from parity import flickr8k
from prescore import Client
from prescore.models import Evaluation
from service.contract.formats import bundles
from workers.inference.captioners import DropoutRates
from workers.lab import shapes, training, training_runs
from workers.lab.training import CaptionedImages, TrainingRecipe
from workers.lab.training_runs import RecipeRun

SPLIT = "test"
PERCENTS = (5, 10, 25, 50, 80, 85, 90, 95, 100)  # of a training's steps
_POSTGEN = ("bleu", "rouge_l", "cider_d")
DECODING = {"beam": 1, "max_words": 20}
_USUAL = TrainingRecipe(
    32,
    DropoutRates(0.0, 0.3, 0.3),
    0.0,
    xavier=True,
    clip=1.0,
    learning_rate=2e-3,
    early_stop=False,
)
_VALIDATION = 50  # images: perplexity is for show, no epoch is chosen by it


@dataclass(frozen=True)
class LabRecipe:
    """`images` of the training split with `said` captions of each make an epoch; trained with so
    many seeds.
    """

    name: str
    architecture: str
    size: int
    images: int
    said: int = 1
    rate: float = 2e-3
    seeds: int = 3


@dataclass(frozen=True)
class TrialSet:
    """A dataset and the trainings on it; `at_least`: how often a word of the vocabulary is said."""

    name: str
    make: Callable[[Path], object]
    recipes: Sequence[LabRecipe]
    tested: int  # images
    postgen: Sequence[str] = _POSTGEN
    at_least: int = 5
    epochs: int = 20

    @property
    def split(self) -> str:
        return f"{self.name}/{SPLIT}"

    @property
    def trainings(self) -> int:
        return sum(recipe.seeds for recipe in self.recipes)


SHAPES = TrialSet(
    "shapes",
    lambda folder: shapes.make_shapes(folder, 4000, seed=0),
    (
        LabRecipe("merge 32", "merge", 32, 800),
        LabRecipe("merge 32 slow", "merge", 32, 800, rate=5e-4),
        LabRecipe("merge 32 few", "merge", 32, 160, said=5),
        LabRecipe("par 32", "par", 32, 800),
        LabRecipe("par 24", "par", 24, 800),
        LabRecipe("pre 32", "pre", 32, 800),
        LabRecipe("init 32", "init", 32, 800),
    ),
    tested=256,
    postgen=(*_POSTGEN, "meteor"),
)

FEW = replace(
    SHAPES,
    name="few",
    recipes=(
        LabRecipe("merge 16", "merge", 16, 320, seeds=2),
        LabRecipe("merge 12", "merge", 12, 320, seeds=2),
        LabRecipe("init 16", "init", 16, 320, seeds=2),
    ),
    tested=64,
)


def flickr8k_set(data: Path) -> TrialSet:
    """Flickr8k's image features."""
    return TrialSet(
        "flickr8k",
        lambda folder: flickr8k.make_bundle(data, folder),
        (
            LabRecipe("merge 64", "merge", 64, 800, rate=3e-3),
            LabRecipe("merge 64 slow", "merge", 64, 800, rate=1e-3),
            LabRecipe("merge 64 few", "merge", 64, 160, said=5, rate=3e-3),
            LabRecipe("par 64", "par", 64, 800, rate=3e-3),
            LabRecipe("pre 64", "pre", 64, 800, rate=3e-3),
            LabRecipe("init 64", "init", 64, 800, rate=3e-3),
            LabRecipe("merge 48", "merge", 48, 800, rate=3e-3),
        ),
        tested=500,
        at_least=25,
    )


def evaluate_trainings(
    client: Client, tried: TrialSet, folder: Path, say: Callable[[str], object] = print
) -> list[Evaluation]:
    """Train and evaluate all; those that an earlier call has evaluated are not trained again."""
    bundle = folder / tried.name
    if not bundle.exists():
        tried.make(bundle)
    _keep_tested(bundle, tried.tested)
    client.add_dataset(tried.name, bundle)
    found = []
    for seed in range(max(recipe.seeds for recipe in tried.recipes)):
        for recipe in tried.recipes:
            if seed >= recipe.seeds:
                continue
            labels = {"run": f"{recipe.name}, {seed}", "recipe": recipe.name, "seed": str(seed)}
            known = _find_evaluations(client, tried, labels["run"])
            if len(known) < len(PERCENTS):
                known = [*_evaluate_training(client, tried, bundle, recipe, labels)]
            found += known
            ended = next(one for one in known if one.labels["step"] == str(tried.epochs))
            say(f"{tried.name}: {labels['run']}: cider_d {ended.scores['cider_d'].value:.3f}")
    return found


def _keep_tested(bundle: Path, many: int) -> None:
    """Leave only the first images of the split that is tested; the features stay."""
    items = list(bundles.read_items(bundle))
    tested = [item for item in items if item.split == SPLIT]
    if len(tested) > many:
        others = [item for item in items if item.split != SPLIT]
        bundles.write_bundle_folder(bundle, [*others, *tested[:many]])


def _find_evaluations(client: Client, tried: TrialSet, run: str) -> list[Evaluation]:
    """Find one evaluation of each step."""
    known = client.evaluations(dataset=tried.split, status="succeeded", labels={"run": run})
    return list({one.labels["step"]: one for one in known}.values())


def _evaluate_training(
    client: Client, tried: TrialSet, bundle: Path, recipe: LabRecipe, labels: Mapping[str, str]
) -> Iterator[Evaluation]:
    run = _prepare(bundle, recipe, tried.at_least)
    chosen = replace(
        _USUAL, learning_rate=recipe.rate, epochs=tried.epochs, seed=int(labels["seed"])
    )
    steps = {percent * tried.epochs // 100 for percent in PERCENTS}
    begun = []
    for epoch in training.train_captioner(run.description, run.training, run.validation, chosen):
        if epoch.number in steps:
            path = training_runs.save_epoch(bundle.parent, epoch)
            evaluation = client.submit(
                tried.split,
                checkpoint=client.upload_checkpoint(path),
                postgen=tried.postgen,
                decoding=DECODING,
                labels={**labels, "step": str(epoch.number)},
            )
            path.unlink()
            begun.append(evaluation.id)
    for identity in begun:
        ended = client.wait(identity)
        assert ended.status == "succeeded", ended
        yield ended


def _prepare(bundle: Path, recipe: LabRecipe, at_least: int) -> RecipeRun:
    run = training_runs.prepare_training(
        bundle,
        architecture=recipe.architecture,
        sizes={"cell": "gru", "size": recipe.size},
        at_least=at_least,
        splits=("train", "val"),
        device="cpu",
    )
    return replace(
        run,
        training=_take_part(run.training, recipe.images, recipe.said),
        validation=_take_part(run.validation, _VALIDATION, 1),
    )


def _take_part(whole: CaptionedImages, images: int, said: int) -> CaptionedImages:
    """Take the first images, and of each the first captions."""
    firsts = whole.captions.image_offsets[:images, None] + np.arange(said)
    return CaptionedImages(whole.features[:images], whole.captions.subset(firsts.ravel()).captions)
