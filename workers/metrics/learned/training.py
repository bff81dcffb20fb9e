"""Train a learned metric from captions: choose them, measure, fit, compare features, describe."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from service.contract.errors import RequestRefused
from service.contract.metrics import tokenizers
from workers.metrics import frequencies, references
from workers.metrics.family import Score
from workers.metrics.frequencies import Frequencies
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import features, fitting, soundness, training_sets
from workers.metrics.learned.features import Measured, Tools
from workers.metrics.learned.fitting import Fitted, Report, Row, Watched
from workers.metrics.learned.model import Model
from workers.metrics.learned.network import NetworkRecipe
from workers.metrics.learned.ratings import Rated
from workers.metrics.learned.training_sets import Captioner, Examples
from workers.metrics.tokens import Tokenizer

_SHARES = (8, 1, 1)  # of images to train on, to stop at and to test on, if there are no ratings
_APART = (9, 1)  # of images to train on and to hold out, if there are ratings
_TRAINING, _STOPPING, _TEST = "training images", "early-stopping images", "test images"
_HELD_OUT = "held-out images"


@dataclass(frozen=True)
class Material:
    """Images with their references, captioners' captions of them, and people's ratings. Half of the
    rated images decide when training stops, the other half is the test. Without ratings, parts of
    the images are used for both, by how well people and machines are told apart. `further`
    references count in document frequencies; `inputs` are digests, for the record.
    """

    people: Mapping[str, Sequence[str]]
    captioners: Sequence[Captioner]
    rated: Rated | None = None
    further: Sequence[Sequence[str]] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)

    def of(self, images: frozenset[str]) -> "Material":
        people = {image: said for image, said in self.people.items() if image in images}
        return replace(self, people=people)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The trained model. `rows`: the metric, each feature alone, the metric without each."""

    model: Model
    rows: Sequence[Row]


def silent(what: str, done: int, total: int) -> None:
    """A Report that does nothing."""


def train(
    material: Material,
    names: Sequence[str],
    jvm: Jvm,
    recipe: NetworkRecipe = NetworkRecipe(),
    *,
    score: Score,
    tokenizer: Tokenizer = tokenizers.USUAL,
    report: Report = silent,
    **needs: Any,
) -> Outcome:
    """Train a metric of the features `names`. `score` scores captions by any family; `needs` are
    what some features need besides captions, as `Toolbox.features` brings it. Raises RequestRefused
    if sets share a photo, MetricFailed if what was trained says nothing of captions
    (`soundness`), MetricFailed and Canceled as metrics do.
    """
    features.check(names)
    parts = _parts(material, recipe.seed)
    training = material.of(parts[0]).people
    corpus = [*training.values(), *material.further]
    prepared = references.prepare(
        corpus, tokenizer, jvm, progress=lambda _, total: report(_features_of(_TRAINING), 0, total)
    )
    counted = frequencies.collect(prepared)
    tools = Tools(score, jvm, counted, needs)
    bench = _Bench(material, names, tokenizer, tools, recipe.seed, report)
    examples = training_sets.build(training, material.captioners, recipe.seed)
    measured = bench.measure(_TRAINING, examples.captions, examples.reference_sets)
    task = fitting.Task(
        names,
        measured.values,
        examples.human,
        *bench.stopping(parts[1], parts[3]),
        bench.watched(_TEST, parts[2], material.rated),
    )
    fitted = fitting.fit(task, recipe, report=report)
    rows = [
        Row("all features", fitted.stopping, fitted.test),
        *fitting.single_features(task),
        *fitting.one_left_out(task, recipe, report=report),
    ]
    about = _about(material, recipe, examples, counted, fitted, rows)
    found = _model(names, measured, tokenizer, fitted, counted, about)
    soundness.check(found, score)
    return Outcome(found, rows)


def _features_of(what: str) -> str:
    return f"features of {what}"


def _parts(material: Material, seed: int) -> list[frozenset[str]]:
    """Images to train on, to stop at, to test on, and to hold out: those to stop at if there are no
    ratings. No photo is in two of them.
    """
    if material.rated is None:
        training, stopping, test = training_sets.parts(material.people, _SHARES, seed)
        held_out: frozenset[str] = stopping
        found = {_TRAINING: training, _STOPPING: stopping, _TEST: test}
    else:
        training, held_out = training_sets.parts(material.people, _APART, seed)
        stopping, test = training_sets.parts(material.rated.images, (1, 1), seed)
        found = {_TRAINING: training, _STOPPING: stopping, _TEST: test, _HELD_OUT: held_out}
    for what, images in found.items():
        if not images:
            raise RequestRefused(f"expected {what}, found none")
    training_sets.disjoint(found)
    return [training, stopping, test, held_out]


@dataclass(frozen=True, eq=False)
class _Bench:
    material: Material
    names: Sequence[str]
    tokenizer: Tokenizer
    tools: Tools
    seed: int
    report: Report

    def measure(
        self, what: str, captions: Sequence[str], reference_sets: Sequence[tuple[str, ...]]
    ) -> Measured:
        tools = replace(self.tools, progress=partial(self.report, _features_of(what)))
        return features.measure_texts(self.names, captions, reference_sets, self.tokenizer, tools)

    def stopping(self, images: frozenset[str], held_out: frozenset[str]) -> tuple[Watched, Watched]:
        """Captions that are held out, and those to stop at, which are the same without ratings."""
        rated = self.material.rated
        stopping = self.watched(_STOPPING, images, rated)
        apart = stopping if rated is None else self.watched(_HELD_OUT, held_out, None)
        return apart, stopping

    def watched(self, what: str, images: frozenset[str], rated: Rated | None) -> Watched:
        """Rated captions of the images; if nobody rated them, who wrote them."""
        if rated is not None:
            kept = rated.of(images)
            found = self.measure(what, kept.captions, kept.reference_sets)
            return Watched(found.values, *kept.observations)
        people = self.material.of(images).people
        examples = training_sets.build(people, self.material.captioners, self.seed)
        found = self.measure(what, examples.captions, examples.reference_sets)
        places = np.arange(len(examples.captions))
        return Watched(found.values, places, examples.human.astype(np.float64))


def _model(
    names: Sequence[str],
    measured: Measured,
    tokenizer: Tokenizer,
    fitted: Fitted,
    counted: Frequencies,
    about: Mapping[str, Any],
) -> Model:
    return Model(
        features=tuple(names),
        recipes=measured.recipes,
        tokenizer=tokenizer,
        scaling=fitted.scaling,
        classifier=fitted.classifier,
        frequencies=counted,
        about=about,
    )


def _about(
    material: Material,
    recipe: NetworkRecipe,
    examples: Examples,
    counted: Frequencies,
    fitted: Fitted,
    rows: Sequence[Row],
) -> dict[str, Any]:
    unstated = "not stated"
    return {
        "learner": "network",  # a constant, by which files have the digests that they had
        "recipe": asdict(recipe),
        "training": {
            "images": len(set(examples.images)),
            "captions": len(examples.captions),
            "captioners": {
                each.name: unstated if each.trained_on is None else len(each.trained_on)
                for each in material.captioners
            },
            "frequencies": {"images": counted.images, "digest": counted.digest},
            "inputs": dict(material.inputs),
        },
        "stopped_by": "people" if material.rated is not None else "held-out images",
        "epochs": len(fitted.trained.qualities) - 1,
        "best_epoch": fitted.trained.best_epoch,
        "held_out_loss": {
            "chosen": round(fitted.trained.held_out[fitted.trained.best_epoch], 4),
            "lowest": round(min(fitted.trained.held_out), 4),
        },
        "kendall_c": {row.what: [round(row.stopping, 4), round(row.test, 4)] for row in rows},
    }
