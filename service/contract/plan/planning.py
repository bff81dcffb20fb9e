"""Plans: the graph of works for each kind of request. Pure: no clock, files or database."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.contract.errors import InvalidRequest
from service.contract.metrics import families
from service.contract.metrics.catalogue import LEARNED, model_of, work_of
from service.contract.metrics.families import FAMILIES, Need, kind_of
from service.contract.plan import prices
from service.contract.plan.prices import Sizes
from service.contract.plan.works import Blob, Work, everything

# How many images are computed at once. The last bits of a matrix product depend on its size, so the
# block is part of a result: works are sharded in whole blocks, and planning and workers both use
# this number. Images decoded in another order than the split's are in other blocks: their order is
# an input of their captions.
BLOCK_IMAGES = 128
USUAL_SEARCH = 3 * 50  # a beam of 3, 50 words
LONG_SEARCH = 1000  # above this, captions need not end early
# Images of a shard: whole blocks, so that sharding changes no bit, and few (1 to 3 s on two cores),
# since the quick scores of another run wait until the running shard ends.
COLUMNS_IMAGES, CAPTIONS_IMAGES = 1024, 256
FEATURES_IMAGES = 384  # an encoder takes 30 to 50 ms a picture
THUMBNAILS_IMAGES = 64  # pictures that are made small together, in 2 to 5 s
OWN_BLOCK = 16  # images of a block of captions, of a model that searches in its own way
LOOKS = 8  # shards of captions in their own order, where whole blocks allow so many
# Parsing takes 30 to 50 ms a caption on two cores, so a shard takes at most 20 s. An image has one
# caption, which may have been parsed before, and usually five different references.
PARSED_IMAGES, PARSED_REFERENCES_IMAGES = 500, 75
EMBEDDED_IMAGES = 200  # a thousand references: a few seconds with a small model
_TRAINING = "train"
HEALTH = "health"  # a work: how far metrics can be trusted, from all probes
MAX_PARTS = 500  # of one work
_OF_SYSTEMS = frozenset({"human", "single"})  # probes that also use a system's captions
_TRAINED = frozenset({"rare", "single"})  # probes that also use training captions


def decoding_block(beam: int, max_words: int) -> int:
    """Images of a block; fewer for a longer search, so that all blocks take about the same time."""
    return max(1, min(BLOCK_IMAGES, BLOCK_IMAGES * USUAL_SEARCH // (beam * max_words)))


@dataclass(frozen=True)
class Plan:
    """Works by the name that a run shows; `everything` also has their shards."""

    named: Mapping[str, Work]

    def everything(self) -> list[Work]:
        return everything(self.named.values())


@dataclass(frozen=True)
class Wanted:
    """The post-gen metrics of a request. `own`: parameters by family; `idf`: matters where only a
    part of the split has captions; `training`: the split that captioners were trained on;
    `models`: digests of the models of learned metrics, by family.
    """

    families: Sequence[str]
    tokenizer: str
    idf: str = "dataset"
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    training: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)


def conversion(package: str, plugin: Mapping[str, str] | None = None) -> Work:
    """What makes a checkpoint in Prescore's own form of one that came in another's, or verifies one
    that is evaluated as it is; by a plug-in of this package and version, so that nothing which is
    computed by another version has the same key.
    """
    asked = {} if plugin is None else {"plugin": dict(plugin)}
    return Work("checkpoint", {"package": Blob(package)}, asked)


def inputs_of_model(checkpoint: str | Work, verified: Work | None = None) -> dict[str, Blob | Work]:
    """The inputs of works by which they have a model."""
    found: dict[str, Blob | Work] = {
        "checkpoint": Blob(checkpoint) if isinstance(checkpoint, str) else checkpoint
    }
    return found if verified is None else {**found, "verified": verified}


def plan_checkpoint(
    checkpoint: str | Work,
    dataset: str,
    split: str,
    images: int,
    *,
    pregen: bool,
    wanted: Wanted,
    decoding: Mapping[str, Any],
    precision: str = "fp32",
    tokens: Mapping[str, Any] | None = None,
    references: str | None = None,
    encoder: str | None = None,
    sizes: Sizes = prices.USUAL,
    verified: Work | None = None,
    searches: bool = False,
    units: str = "words",
) -> Plan:
    """Pre-gen scores first, then captions, then one work for each post-gen family. The columns of
    many images decide the order in which they are decoded. What `tokens` asks for is computed by
    another work on columns, so that the keys of scores and captions do not depend on it.
    `references`: the object from which people's captions are read, if it is not the whole bundle.
    `encoder`: the SHA-256 of the encoder by which features are computed, if the dataset has none of
    it. Parts are smaller where `sizes` say that they would take long. `verified`: the work that
    verifies a checkpoint which is evaluated as it came. `searches`: whether it does so in its own
    way. `units`: of scores, where its tokens are pieces.
    """
    inputs = {**inputs_of_model(checkpoint, verified), "dataset": Blob(dataset)}
    prepared = verified if isinstance(checkpoint, str) else checkpoint
    named: dict[str, Work] = {} if prepared is None else {"checkpoint": prepared}
    if encoder is not None:
        inputs["features"] = named["features"] = features(dataset, split, images, encoder)
    scored = {"split": split} if units == "words" else {"split": split, "units": units}

    def columns(**more: Any) -> Work:
        unusual = {} if precision == "fp32" else {"precision": precision}
        parameters = {**scored, **unusual, **more}
        seconds = BLOCK_IMAGES * sizes.columns
        wanted = prices.few_enough(COLUMNS_IMAGES, BLOCK_IMAGES, seconds)
        return _sharded("columns", inputs, parameters, images, BLOCK_IMAGES, wanted)

    if pregen:
        named["prefix"] = Work("prefix", inputs, scored)
        named["columns"] = columns()
        named["pregen"] = Work("pregen", {"columns": named["columns"]}, {})
    if tokens is not None and (detailed := columns(**tokens)) != named.get("columns"):
        named["tokens"] = detailed
    if wanted.families:
        search = decoding["beam"], decoding["max_words"]
        block = OWN_BLOCK if searches else decoding_block(*search)
        size = max(block, min(CAPTIONS_IMAGES, CAPTIONS_IMAGES * USUAL_SEARCH // math.prod(search)))
        if pregen and images > CAPTIONS_IMAGES:
            named["order"] = Work("order", {"columns": named["columns"]}, {})
            inputs = {**inputs, "order": named["order"]}
            size = min(size, images // LOOKS)
        size = prices.few_enough(size, block, prices.search(sizes, block, block, *search))
        parameters = {"split": split, "decoding": dict(decoding)}
        captions = _sharded("captions", inputs, parameters, images, block, size)
        named["captions"] = captions
        people = Blob(references or dataset)
        named |= _Postgen(captions, people, split, images, wanted).named()
    return Plan(named)


def features(dataset: str, split: str, images: int, encoder: str) -> Work:
    """Features of a split's pictures, by the encoder with this SHA-256."""
    asked = {"split": split, "encoder": encoder}
    sizes = images, BLOCK_IMAGES, FEATURES_IMAGES
    return _sharded("features", {"dataset": Blob(dataset)}, asked, *sizes)


def picture_digests(dataset: str, split: str) -> Work:
    """The SHA-256 of a split's pictures, by which the same ones are known elsewhere."""
    return Work("picture_digests", {"dataset": Blob(dataset)}, {"split": split})


def thumbnails(dataset: str, split: str, places: Sequence[int]) -> Work:
    """Small forms of the pictures of the images at these places."""
    asked = {"split": split, "places": list(places)}
    return Work("thumbnails", {"dataset": Blob(dataset)}, asked)


def plan_captions(captions: str, dataset: str, split: str, images: int, wanted: Wanted) -> Plan:
    return Plan(_Postgen(Blob(captions), Blob(dataset), split, images, wanted).named())


def plan_brought(
    columns: str, captions: Plan | None, *, pregen: bool, units: str = "words"
) -> Plan:
    """Pre-gen scores of columns that somebody's own code computed, then what captions are scored
    by, if there are some.
    """
    unusual = {} if units == "words" else {"units": units}
    named = {"columns": Work("brought", {"columns": Blob(columns)}, unusual)}
    if pregen:
        named["pregen"] = Work("pregen", {"columns": named["columns"]}, {})
    return Plan({**named, **(captions.named if captions is not None else {})})


def with_forecast(plan: Plan, history: str) -> Plan:
    """The plan with a work `forecast` after `pregen`, which also reads `history` (a digest)."""
    named: dict[str, Work] = {}
    for name, work in plan.named.items():
        named[name] = work
        if name == "pregen":
            named["forecast"] = Work("forecast", {"pregen": work, "history": Blob(history)}, {})
    return Plan(named)


@dataclass(frozen=True)
class Probing:
    """A request for probes. `options`: of single probes, by name; `own`: parameters of metrics by
    family; `captions`: of a system, which some probes compare with people's.
    """

    probes: Sequence[str]
    metrics: Sequence[str]
    tokenizer: str
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    training: str | None = None
    captions: Blob | Work | None = None


def plan_probes(dataset: str, split: str, asked: Probing) -> Plan:
    """A work for each probe, and one that derives the metrics' health from all of them."""
    for place, name in enumerate(asked.metrics):
        if model_of(name) is not None:
            raise InvalidRequest(
                f"{name} cannot be probed, since it names a model; use {LEARNED}: the registered "
                "or else the shipped model",
                [(f"/metrics/{place}", f"expected {LEARNED}")],
            )
        row = FAMILIES.get(work_of(name))
        if row is not None and not row.is_probed:
            raise InvalidRequest(
                f"{name} cannot be probed: it does not compare captions with references alone",
                [(f"/metrics/{place}", "expected a metric of captions and references")],
            )
    named = {probe: _probe(probe, Blob(dataset), split, asked) for probe in asked.probes}
    return Plan({**named, HEALTH: Work("health", named, {})})


def comparison(a: Blob | Work, b: Blob | Work, pregen: Sequence[str] = ()) -> Work:
    """Compare two systems by scores of one family, or by columns for the `pregen` metrics."""
    return Work("comparison", {"a": a, "b": b}, {"pregen": list(pregen)} if pregen else {})


def _probe(probe: str, dataset: Blob, split: str, asked: Probing) -> Work:
    inputs: dict[str, Blob | Work] = {"dataset": dataset}
    if asked.captions is not None and probe in _OF_SYSTEMS:
        inputs["captions"] = asked.captions
    parameters = {
        "probe": probe,
        "split": split,
        "metrics": list(asked.metrics),
        "tokenizer": asked.tokenizer,
        "own": {family: dict(own) for family, own in asked.own.items() if own},
        "options": dict(asked.options.get(probe, {})),
        "training": asked.training if probe in _TRAINED else None,
    }
    return Work("probe", inputs, parameters)


@dataclass(frozen=True)
class Captioner:
    """A captioner's captions of a split, and the split it was trained on, if that is known."""

    name: str
    captions: Blob
    trained_on: tuple[Blob, str] | None = None


def plan_learned(
    dataset: str,
    split: str,
    captioners: Sequence[Captioner],
    ratings: Blob | None,
    recipe: Mapping[str, Any],
) -> Plan:
    """One work, whose result is a model; `ratings` decide when the training stops."""
    inputs: dict[str, Blob | Work] = {"dataset": Blob(dataset)}
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
    parameters = {"split": split, "captioners": shown, **recipe}
    return Plan({"model": Work("learned", inputs, parameters)})


def training_split(splits: Iterable[str], scored: str) -> str | None:
    """The split that captioners were trained on; None where there is none, or it is scored."""
    return _TRAINING if _TRAINING in splits and scored != _TRAINING else None


@dataclass(frozen=True)
class _Postgen:
    captions: Blob | Work
    dataset: Blob
    split: str
    images: int
    wanted: Wanted

    def named(self) -> dict[str, Work]:
        """The works by name: references first, families that need a parser last."""
        wanted = self.wanted.families
        named: dict[str, Work] = {}
        if any("references" in families.needs(family) for family in wanted):
            named |= self._prepared("references", "")
        for family in sorted(wanted, key=lambda family: "tuples" in families.needs(family)):
            self._add(family, named)
        return named

    def _add(self, family: str, named: dict[str, Work]) -> None:
        """Add a family's work to `named`, after all that it needs."""
        if family in named:
            return
        row = FAMILIES[kind_of(family)]
        for part in row.made_of:
            self._add(part, named)
        inputs: dict[str, Blob | Work] = {} if row.made_of else {"captions": self.captions}
        for need in row.needs:
            for name, work in self._prepared(need, family).items():
                inputs[name] = named.setdefault(name, work)
        inputs |= {part: named[part] for part in row.made_of}
        if family in self.wanted.models:
            inputs["model"] = Blob(self.wanted.models[family])
        named[family] = Work(kind_of(family), inputs, self._parameters(family))

    def _parameters(self, family: str) -> dict[str, Any]:
        row = FAMILIES[kind_of(family)]
        own = dict(self.wanted.own.get(family, {}))
        if row.is_weighted and self.wanted.idf != "dataset":
            own["idf"] = self.wanted.idf
        if row.reads == "tokens" and "references" not in row.needs:  # references have the tokeniser
            own["tokenizer"] = self.wanted.tokenizer
        return own

    def _prepared(self, need: Need, family: str) -> dict[str, Work]:
        """The works that compute a need of a family; empty where the machine has it as an asset."""
        match need:
            case "references":
                asked = self._tokens(self.split)
                return {"references": Work("references", {"dataset": self.dataset}, asked)}
            case "tuples":
                return self._parsed()
            case "embedded":
                return {"embedded_references": self._embedded("embedded_references", family)}
            case "sentences":
                return {"reference_sentences": self._embedded("reference_sentences", family)}
            case "training" if self.wanted.training is not None:
                asked = self._tokens(self.wanted.training)
                return {"training": Work("training", {"dataset": self.dataset}, asked)}
        return {}

    def _tokens(self, split: str) -> dict[str, Any]:
        return {"split": split, "tokenizer": self.wanted.tokenizer}

    def _parsed(self) -> dict[str, Work]:
        people, tokenizer = self._prepared("references", ""), {"tokenizer": self.wanted.tokenizer}
        of_people = self.images, 1, PARSED_REFERENCES_IMAGES
        of_captions = self.images, 1, PARSED_IMAGES
        return {
            "reference_tuples": _sharded("tuples", people, {}, *of_people),
            "tuples": _sharded("tuples", {"captions": self.captions}, tokenizer, *of_captions),
        }

    def _embedded(self, kind: str, family: str) -> Work:
        own = self.wanted.own.get(family, {})
        asked = {"split": self.split, **{name: own.get(name) for name in ("encoder", "layer")}}
        sizes = self.images, 1, EMBEDDED_IMAGES
        return _sharded(kind, {"dataset": self.dataset}, asked, *sizes)


def _sharded(
    kind: str,
    inputs: Mapping[str, Blob | Work],
    parameters: Mapping[str, Any],
    images: int,
    block: int,
    wanted: int,
) -> Work:
    """One work for all images, joined from parts of about `wanted` images where there are more.

    Parts are whole blocks, and larger than `wanted` where there would be more than MAX_PARTS.
    """
    size = block * max(1, wanted // block, math.ceil(images / (block * MAX_PARTS)))
    starts = range(0, images, size)
    parts = tuple(
        Work(kind, inputs, {**parameters, "images": [start, min(start + size, images)]})
        for start in starts
    )
    return Work(kind, inputs, parameters, parts if len(parts) > 1 else ())
