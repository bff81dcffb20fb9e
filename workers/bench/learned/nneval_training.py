"""Training of NNEval from captions of people and machines, and people's ratings."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from service.contract.errors import RequestRefused
from service.contract.metrics import tokenizers
from workers.bench.judgements import RatedCaption
from workers.bench.judging.verdict import list_observations
from workers.bench.learned import nneval_fitting, training_sets
from workers.bench.learned.nneval_fitting import (
    AgreementRow,
    FittedNetwork,
    NetworkRecipe,
    Report,
    WatchedCaptions,
    ignore_report,
)
from workers.bench.learned.training_sets import CaptionerOutputs, NNEvalExamples
from workers.metrics import frequencies, references
from workers.metrics.family import ScoreFamily
from workers.metrics.frequencies import DocumentFrequencies
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import features, soundness
from workers.metrics.learned.features import FeatureTools, FeatureValues
from workers.metrics.learned.nneval import NNEvalModel
from workers.metrics.tokens import Tokenizer

_SHARES = (8, 1, 1)  # of images to train on, to stop at and to test on, if there are no ratings
_APART = (9, 1)  # of images to train on and to hold out, if there are ratings
_TRAINING, _STOPPING, _TEST = "training images", "early-stopping images", "test images"
_HELD_OUT = "held-out images"


@dataclass(frozen=True)
class NNEvalMaterial:
    """Images with their references, captioners' captions of them, and captions that people rated,
    each with its image. Half of the rated images decide when training stops, the other half is the
    test. Without ratings, parts of the images are used for both, by how well people and machines
    are told apart. `further` references count in document frequencies; `inputs` are digests, for
    the record.
    """

    people: Mapping[str, Sequence[str]]
    captioners: Sequence[CaptionerOutputs]
    rated: Sequence[RatedCaption] | None = None
    further: Sequence[Sequence[str]] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)

    def of(self, images: frozenset[str]) -> "NNEvalMaterial":
        people = {image: said for image, said in self.people.items() if image in images}
        return replace(self, people=people)


@dataclass(frozen=True, eq=False)
class NNEvalOutcome:
    """The trained model. `rows`: the metric, each feature alone, the metric without each."""

    model: NNEvalModel
    rows: Sequence[AgreementRow]


def train_nneval(
    material: NNEvalMaterial,
    names: Sequence[str],
    jvm: Jvm,
    recipe: NetworkRecipe = NetworkRecipe(),
    *,
    score: ScoreFamily,
    tokenizer: Tokenizer = tokenizers.USUAL,
    report: Report = ignore_report,
    **needs: Any,
) -> NNEvalOutcome:
    """Train a metric of the features `names`. `score` scores captions by any family; `needs` are
    what some features need besides captions, as `Toolbox.features` brings it. Raises RequestRefused
    if sets share a photo, MetricFailed if what was trained says nothing of captions
    (`soundness`), MetricFailed and Canceled as metrics do.
    """
    features.check_features(names)
    parts = _parts(material, recipe.seed)
    training = material.of(parts[0]).people
    corpus = [*training.values(), *material.further]
    prepared = references.prepare_references(
        corpus, tokenizer, jvm, progress=lambda _, total: report(_features_of(_TRAINING), 0, total)
    )
    counted = frequencies.collect_frequencies(prepared)
    tools = FeatureTools(score, jvm, counted, needs)
    bench = _FeatureBench(material, names, tokenizer, tools, recipe.seed, report)
    examples = training_sets.build_examples(training, material.captioners, recipe.seed)
    measured = bench.measure(_TRAINING, examples.captions, examples.reference_sets)
    task = nneval_fitting.FittingData(
        names,
        measured.values,
        examples.human,
        *bench.stopping(parts[1], parts[3]),
        bench.watched(_TEST, parts[2], material.rated),
    )
    fitted = nneval_fitting.fit_network(task, recipe, report=report)
    rows = [
        AgreementRow("all features", fitted.stopping, fitted.test),
        *nneval_fitting.rate_single_features(task),
        *nneval_fitting.rate_left_out_features(task, recipe, report=report),
    ]
    found = NNEvalModel(
        features=tuple(names),
        recipes=measured.recipes,
        tokenizer=tokenizer,
        scaling=fitted.scaling,
        classifier=fitted.trained.classifier,
        frequencies=counted,
        about=_about(material, recipe, examples, counted, fitted, rows),
    )
    soundness.check_model(found, score)
    return NNEvalOutcome(found, rows)


def _features_of(what: str) -> str:
    return f"features of {what}"


def _parts(material: NNEvalMaterial, seed: int) -> list[frozenset[str]]:
    """Images to train on, to stop at, to test on and to hold out, which share no photo."""
    if material.rated is None:
        training, stopping, test = training_sets.split_images(material.people, _SHARES, seed)
        held_out: frozenset[str] = stopping
        found = {_TRAINING: training, _STOPPING: stopping, _TEST: test}
    else:
        training, held_out = training_sets.split_images(material.people, _APART, seed)
        rated_images = [str(line.image) for line in material.rated]
        stopping, test = training_sets.split_images(rated_images, (1, 1), seed)
        found = {_TRAINING: training, _STOPPING: stopping, _TEST: test, _HELD_OUT: held_out}
    for what, images in found.items():
        if not images:
            raise RequestRefused(f"expected {what}, found none")
    training_sets.check_disjoint(found)
    return [training, stopping, test, held_out]


@dataclass(frozen=True, eq=False)
class _FeatureBench:
    material: NNEvalMaterial
    names: Sequence[str]
    tokenizer: Tokenizer
    tools: FeatureTools
    seed: int
    report: Report

    def measure(
        self, what: str, captions: Sequence[str], reference_sets: Sequence[tuple[str, ...]]
    ) -> FeatureValues:
        tools = replace(self.tools, progress=partial(self.report, _features_of(what)))
        return features.measure_texts(self.names, captions, reference_sets, self.tokenizer, tools)

    def stopping(
        self, images: frozenset[str], held_out: frozenset[str]
    ) -> tuple[WatchedCaptions, WatchedCaptions]:
        """Captions that are held out, and those to stop at, which are the same without ratings."""
        rated = self.material.rated
        stopping = self.watched(_STOPPING, images, rated)
        apart = stopping if rated is None else self.watched(_HELD_OUT, held_out, None)
        return apart, stopping

    def watched(
        self, what: str, images: frozenset[str], rated: Sequence[RatedCaption] | None
    ) -> WatchedCaptions:
        """Rated captions of the images; if nobody rated them, who wrote them."""
        if rated is not None:
            kept = [line for line in rated if line.image in images]
            found = self.measure(
                what, [line.candidate for line in kept], [line.references for line in kept]
            )
            ratings, captions = list_observations([line.ratings for line in kept], "flat")
            return WatchedCaptions(found.values, captions, ratings)
        people = self.material.of(images).people
        examples = training_sets.build_examples(people, self.material.captioners, self.seed)
        found = self.measure(what, examples.captions, examples.reference_sets)
        places = np.arange(len(examples.captions))
        return WatchedCaptions(found.values, places, examples.human.astype(np.float64))


def _about(
    material: NNEvalMaterial,
    recipe: NetworkRecipe,
    examples: NNEvalExamples,
    counted: DocumentFrequencies,
    fitted: FittedNetwork,
    rows: Sequence[AgreementRow],
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
