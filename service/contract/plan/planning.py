"""Plans: the graph of tasks for each kind of request. Pure: no clock, files or database."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from prescore.models.studies import StudyIdf
from service.contract.column_options import USUAL_OPTIONS, ColumnOptions
from service.contract.errors import InvalidRequest
from service.contract.metrics import catalogue, families
from service.contract.metrics.catalogue import find_metric_task
from service.contract.metrics.derived_tables import DerivedTable
from service.contract.metrics.families import FAMILIES, MetricFamily, find_family_name
from service.contract.plan import estimates, prices
from service.contract.plan.estimates import ORDER, OrderHistory
from service.contract.plan.postgen import PostgenPlanner, PostgenRequest
from service.contract.plan.prices import TaskSizes
from service.contract.plan.tasks import (
    BLOCK_IMAGES,
    USUAL_SEARCH,
    Blob,
    Task,
    collect_tasks,
    shard_task,
    size_decoding_block,
)

# Images of a shard: whole blocks, so that sharding changes no bit, and few (1 to 3 s on two cores),
# since the quick scores of another run wait until the running shard ends.
COLUMNS_IMAGES, CAPTIONS_IMAGES = 1024, 256
FEATURES_IMAGES = 384  # an encoder takes 30 to 50 ms a picture
THUMBNAILS_IMAGES = 64  # pictures that are made small together, in 2 to 5 s
OWN_BLOCK = 16  # images of a block of captions, of a model that searches in its own way
LOOKS = 8  # shards of captions in their own order, where whole blocks allow so many
_TRAINING = "train"
HEALTH = "health"  # a task: how far metrics can be trusted, from all probes
_OF_SYSTEMS = frozenset({"human", "single"})  # probes that also use a system's captions
_TRAINED = frozenset({"rare", "single"})  # probes that also use training captions


@dataclass(frozen=True)
class Plan:
    """Tasks by the name that a run shows; `everything` also has their shards."""

    named: Mapping[str, Task]

    def everything(self) -> list[Task]:
        return collect_tasks(self.named.values())


@dataclass(frozen=True)
class ReferenceSource:
    """The object and the split from which a task reads people's captions."""

    captions: str
    split: str

    def add_references(self, task: Task, metrics: Collection[str]) -> Task:
        """Give a task on columns the references, if one of these metrics counts their bytes."""
        if catalogue.BITS not in metrics:
            return task
        inputs = {**task.inputs, "dataset": Blob(self.captions)}
        return Task(task.kind, inputs, {**task.parameters, "split": self.split})


def plan_conversion(
    package: str, plugin: Mapping[str, str] | None = None, base: str | None = None
) -> Task:
    """Plan the task that converts a checkpoint into Prescore's own form, or verifies it; an adapter
    with the base model of this digest.
    """
    asked = {"plugin": plugin and dict(plugin), "base": base}
    given = {name: value for name, value in asked.items() if value is not None}
    return Task("checkpoint", {"package": Blob(package)}, given)


def build_model_inputs(
    checkpoint: str | Task, verified: Task | None = None
) -> dict[str, Blob | Task]:
    """The inputs of tasks by which they have a model."""
    found: dict[str, Blob | Task] = {
        "checkpoint": Blob(checkpoint) if isinstance(checkpoint, str) else checkpoint
    }
    return found if verified is None else {**found, "verified": verified}


@dataclass(frozen=True)
class CheckpointPlanner:
    """The tasks of an evaluation of a checkpoint: pre-gen scores first, then captions, then one
    task for each post-gen family. The columns of many images decide the order in which they are
    decoded. Another task on columns computes `tokens`, so that the keys of scores and captions do
    not depend on it.

    `references`: the object from which people's captions are read, if it is not the whole bundle.
    `encoder`: the SHA-256 of the encoder that computes features, if the dataset has none of it.
    Parts are smaller where `sizes` say that they would take long. `verified`: the task that
    verifies a checkpoint which is evaluated as it came. `searches`: whether it does so in its own
    way. `token_metrics`: those of all tokens together that are asked for. `history`: the digest of
    evaluations from which scores are forecast. `order_history`: past systems' scores, by which
    images are ordered, too.
    """

    checkpoint: str | Task
    dataset: str
    split: str
    images: int
    pregen: bool
    wanted: PostgenRequest
    decoding: Mapping[str, Any]
    options: ColumnOptions = USUAL_OPTIONS
    tokens: Mapping[str, Any] | None = None
    references: str | None = None
    encoder: str | None = None
    sizes: TaskSizes = prices.USUAL
    verified: Task | None = None
    searches: bool = False
    token_metrics: Sequence[str] = ()
    history: str | None = None
    order_history: OrderHistory = field(default_factory=dict)

    def plan(self) -> Plan:
        prepared = self.verified if isinstance(self.checkpoint, str) else self.checkpoint
        named: dict[str, Task] = {} if prepared is None else {"checkpoint": prepared}
        if self._features is not None:
            named["features"] = self._features
        if self.pregen:
            ranked = {"split": self.split, **self.options.for_prefix()}
            named["prefix"] = Task("prefix", self._inputs, ranked)
            named["columns"] = self._columns
            named |= _plan_pregen(
                self._columns, self._people, self.token_metrics, history=self.history
            )
        if self.tokens is not None:
            detailed = self._plan_columns(self.tokens)
            if detailed != named.get("columns"):
                named["tokens"] = detailed
        if self.captions is not None:
            if self._order is not None:
                named[ORDER] = self._order
            named["captions"] = self.captions
            people = Blob(self._people.captions)
            scored = PostgenPlanner(self.captions, people, self.split, self.images, self.wanted)
            named |= scored.named()
        return Plan(named)

    @cached_property
    def captions(self) -> Task | None:
        """The task that decodes captions; None where nothing needs them."""
        if not self.wanted.families:
            return None
        inputs = self._inputs
        search = self.decoding["beam"], self.decoding["max_words"]
        block = OWN_BLOCK if self.searches else size_decoding_block(*search)
        size = max(block, min(CAPTIONS_IMAGES, CAPTIONS_IMAGES * USUAL_SEARCH // math.prod(search)))
        if self._order is not None:
            inputs = {**inputs, ORDER: self._order}
            size = min(size, self.images // LOOKS)
        seconds = prices.price_search(self.sizes, block, block, *search)
        size = prices.limit_part_images(size, block, seconds)
        asked = {"decoding": dict(self.decoding), **self.options.for_captions()}
        parameters = {"split": self.split, **asked}
        return shard_task("captions", inputs, parameters, self.images, block, size)

    @cached_property
    def _order(self) -> Task | None:
        """The task that orders the images of captions; None where they are few."""
        if not self.pregen or self.images <= CAPTIONS_IMAGES:
            return None
        past = estimates.name_history(self.order_history)
        return Task(ORDER, {"columns": self._columns, **past}, {})

    @cached_property
    def _columns(self) -> Task:
        return self._plan_columns({})

    def _plan_columns(self, more: Mapping[str, Any]) -> Task:
        parameters = {"split": self.split, **self.options.for_columns(), **more}
        seconds = BLOCK_IMAGES * self.sizes.columns
        size = prices.limit_part_images(COLUMNS_IMAGES, BLOCK_IMAGES, seconds)
        return shard_task("columns", self._inputs, parameters, self.images, BLOCK_IMAGES, size)

    @cached_property
    def _features(self) -> Task | None:
        if self.encoder is None:
            return None
        return plan_features(self.dataset, self.split, self.images, self.encoder)

    @cached_property
    def _people(self) -> ReferenceSource:
        return ReferenceSource(self.references or self.dataset, self.split)

    @cached_property
    def _inputs(self) -> dict[str, Blob | Task]:
        model = build_model_inputs(self.checkpoint, self.verified)
        features = {} if self._features is None else {"features": self._features}
        return {**model, "dataset": Blob(self.dataset), **features}


def _plan_pregen(
    columns: Task, people: ReferenceSource, token_metrics: Sequence[str], *, history: str | None
) -> dict[str, Task]:
    """The tasks that compute pre-gen scores, and the forecast from `history`. Each metric of all
    tokens together has a task of its own: results of `pregen` that are stored are without it.
    """
    pregen = Task("pregen", {"columns": columns}, {})
    named = {"pregen": pregen}
    if history is not None:
        named["forecast"] = Task("forecast", {"pregen": pregen, "history": Blob(history)}, {})
    for name in token_metrics:
        named[name] = people.add_references(Task(name, {"columns": columns}, {}), [name])
    return named


def plan_features(dataset: str, split: str, images: int, encoder: str) -> Task:
    """Features of a split's pictures, by the encoder with this SHA-256."""
    asked = {"split": split, "encoder": encoder}
    sizes = images, BLOCK_IMAGES, FEATURES_IMAGES
    return shard_task("features", {"dataset": Blob(dataset)}, asked, *sizes)


def plan_picture_digests(dataset: str, split: str) -> Task:
    """The SHA-256 of a split's pictures, by which the same ones are known elsewhere."""
    return Task("picture_digests", {"dataset": Blob(dataset)}, {"split": split})


def plan_thumbnails(dataset: str, split: str, places: Sequence[int]) -> Task:
    """Small forms of the pictures of the images at these places."""
    asked = {"split": split, "places": list(places)}
    return Task("thumbnails", {"dataset": Blob(dataset)}, asked)


def plan_captions(
    captions: str, dataset: str, split: str, images: int, wanted: PostgenRequest
) -> Plan:
    return Plan(PostgenPlanner(Blob(captions), Blob(dataset), split, images, wanted).named())


def plan_brought_columns(
    columns: str,
    captions: Plan | None,
    people: ReferenceSource,
    *,
    pregen: bool,
    options: ColumnOptions = USUAL_OPTIONS,
    token_metrics: Sequence[str] = (),
    history: str | None = None,
) -> Plan:
    """Pre-gen scores of columns that somebody's own code computed, then the scores of captions, if
    there are some.
    """
    named = {"columns": Task("brought", {"columns": Blob(columns)}, options.for_columns())}
    if pregen:
        named |= _plan_pregen(named["columns"], people, token_metrics, history=history)
    return Plan({**named, **(captions.named if captions is not None else {})})


@dataclass(frozen=True)
class ProbeInputs:
    """A request for probes. `options`: of single probes, by name; `own`: parameters of metrics by
    family; `captions`: of a system, which some probes compare with people's; `models`: digests of
    the models of learned metrics, by the names that tell them.
    """

    probes: Sequence[str]
    metrics: Sequence[str]
    tokenizer: str
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    training: str | None = None
    captions: Blob | Task | None = None
    models: Mapping[str, str] = field(default_factory=dict)


def plan_probes(dataset: str, split: str, asked: ProbeInputs) -> Plan:
    """A task for each probe, and one that derives the metrics' health from all of them."""
    for place, name in enumerate(asked.metrics):
        row = FAMILIES.get(find_family_name(find_metric_task(name)))
        if row is not None and not row.is_probed:
            raise InvalidRequest(
                f"{name} cannot be probed: it does not compare captions with references alone",
                [(f"/metrics/{place}", "expected a metric of captions and references")],
            )
    named = {probe: _probe(probe, Blob(dataset), split, asked) for probe in asked.probes}
    return Plan({**named, HEALTH: Task("health", named, {})})


def name_model_input(name: str) -> str:
    """The name of the input by which a probe has the model of a learned metric."""
    return f"model {name}"


def plan_comparison(
    a: Blob | Task, b: Blob | Task, people: ReferenceSource, pregen: Sequence[str] = ()
) -> Task:
    """Compare two systems by scores of one family, or by columns for the `pregen` metrics."""
    task = Task("comparison", {"a": a, "b": b}, {"pregen": list(pregen)} if pregen else {})
    return people.add_references(task, pregen)


def _probe(probe: str, dataset: Blob, split: str, asked: ProbeInputs) -> Task:
    inputs: dict[str, Blob | Task] = {"dataset": dataset}
    if asked.captions is not None and probe in _OF_SYSTEMS:
        inputs["captions"] = asked.captions
    inputs |= {name_model_input(name): Blob(digest) for name, digest in asked.models.items()}
    parameters = {
        "probe": probe,
        "split": split,
        "metrics": list(asked.metrics),
        "tokenizer": asked.tokenizer,
        "own": {family: dict(own) for family, own in asked.own.items() if own},
        "options": dict(asked.options.get(probe, {})),
        "training": asked.training if probe in _TRAINED else None,
    }
    return Task("probe", inputs, {**parameters, **_versions(asked.metrics)})


def _versions(metrics: Sequence[str]) -> dict[str, Any]:
    """Versions of the metrics' shipped models that have changed since probes have them: a new model
    makes its metrics' probes anew, and no others.
    """
    named = sorted({find_family_name(find_metric_task(name)) for name in metrics} & FAMILIES.keys())
    versions = {name: FAMILIES[name].version for name in named if FAMILIES[name].is_relearned}
    return {"versions": versions} if versions else {}


@dataclass(frozen=True)
class TrainingCaptioner:
    """A captioner's captions of a split, and the split it was trained on, if that is known."""

    name: str
    captions: Blob
    trained_on: tuple[Blob, str] | None = None


def plan_learned(
    dataset: str,
    split: str,
    captioners: Sequence[TrainingCaptioner],
    ratings: Blob | None,
    recipe: Mapping[str, Any],
    further: Sequence[tuple[str, str]] = (),
) -> Plan:
    """One task, whose result is a model; `ratings` decide when the training stops. The references
    of `further` splits (object, split) count in document frequencies.
    """
    inputs, splits = _datasets(dataset, split, further)
    for place, captioner in enumerate(captioners):
        inputs[f"captions {place}"] = captioner.captions
        if captioner.trained_on is not None:
            inputs[f"trained on {place}"] = captioner.trained_on[0]
    if ratings is not None:
        inputs["ratings"] = ratings
    shown = [
        {"name": each.name, "trained_on": each.trained_on and each.trained_on[1]}
        for each in captioners
    ]
    parameters = {**splits, "captioners": shown, **recipe}
    return Plan({"model": Task("learned", inputs, parameters)})


def plan_accord(
    dataset: str,
    split: str,
    judgements: Blob | None,
    recipe: Mapping[str, Any],
    further: Sequence[tuple[str, str]] = (),
) -> Plan:
    """One task, whose result is a model of accord: from captions alone, or from judgements."""
    inputs, splits = _datasets(dataset, split, further)
    if judgements is not None:
        inputs["judgements"] = judgements
    return Plan({"model": Task("learned_accord", inputs, {**splits, **recipe})})


def _datasets(
    dataset: str, split: str, further: Sequence[tuple[str, str]]
) -> tuple[dict[str, Blob | Task], dict[str, Any]]:
    """The inputs and parameters by which a training has its datasets."""
    inputs: dict[str, Blob | Task] = {"dataset": Blob(dataset)}
    inputs |= {f"dataset {place}": Blob(each) for place, (each, _) in enumerate(further)}
    more = {"further": [name for _, name in further]} if further else {}
    return inputs, {"split": split, **more}


def find_training_split(splits: Iterable[str], scored: str) -> str | None:
    """The split that captioners were trained on; None where there is none, or it is scored."""
    return _TRAINING if _TRAINING in splits and scored != _TRAINING else None


TaskInput = Blob | Task
STRATA = 5
SORTED_BY = "cider_d"  # images are sorted into strata by their captions' scores of this family
STUDIED_FAMILIES: Mapping[str, MetricFamily] = DerivedTable(
    lambda: {name: row for name, row in families.FAMILIES.items() if row.is_studied},
    families.FAMILIES,
)
# Inputs in which a stratum's document frequencies are counted.
_WEIGHED_BY = ("captions", "references")


@dataclass(frozen=True)
class StudiedModel:
    """A model in a study: its columns, its score files by family, its captions and references."""

    columns: TaskInput
    scores: Mapping[str, TaskInput]
    captions: TaskInput
    references: TaskInput


def plan_strata(model: StudiedModel, idf: StudyIdf) -> Task:
    """The task that computes a model's scores on strata of images."""
    inputs = {"columns": model.columns, **model.scores}
    if idf == "stratum":
        inputs |= {name: getattr(model, name) for name in _WEIGHED_BY}
    return Task("strata", inputs, {"idf": idf})


def plan_study(models: Mapping[str, Task], dataset: str) -> Task:
    """The task that correlates the strata of all models, given by model."""
    return Task("study", models, {"dataset": dataset})
