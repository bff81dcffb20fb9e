"""The tasks that need a model (prefix, columns, captions), and the pre-gen scores."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from service.contract import limits
from service.contract.column_options import ColumnOptions
from service.contract.errors import UnusableCheckpoint
from service.contract.formats import bundles, vocabularies
from service.contract.metrics import catalogue, signatures, tokenizers
from service.contract.results import CommonCaption, DecodingSummary, ScoreSummary
from workers.jobs import checkpoints
from workers.jobs.request import (
    JobRequest,
    JobResult,
    make_summary_result,
    read_references,
    write_json,
)
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from workers.analysis.pregen_intervals import PregenColumns
    from workers.inference.captioners import Captioner
    from workers.inference.decoding import DecodedCaption as DecodedIds
    from workers.inference.vocabulary import EncodedCaptions

_OF_PARTS = ("units", "plugin")  # metadata of columns that their parts have alike
_OF_COLUMNS = ("top", "entropy")  # besides the precision
_OF_TOKENS = ("tokenizer", "units")  # metadata of columns that tell how tokens are cut


def _references_of(request: JobRequest, toolbox: Toolbox) -> tuple[Any, Any, Any, list[int]]:
    """Model, inputs, encoded references and places of a task's images.

    These are all images of the split or a part, in the split's order or the input `order`.
    """
    from workers.inference import checkpoint_checks, features

    model = checkpoints.open_captioner(request, toolbox)
    dataset = request.inputs["dataset"]
    items = bundles.read_split(dataset, request.parameters["split"])
    start, stop = request.parameters.get("images", (0, len(items)))
    places = _order(request, len(items))[start:stop]
    items = [items[place] for place in places]
    images = [item.image for item in items]
    computed = request.inputs.get("features")
    if computed is None:
        inputs = model.inputs(dataset, images)
    else:
        assert model.encoder is not None
        inputs = features.read_computed_features(computed, images, model.encoder)
    checkpoint_checks.check_places_fit(model, inputs, toolbox.memory)
    encoded = model.tokens.encode([item.references for item in items])
    return model, inputs, encoded, places


def _order(request: JobRequest, images: int) -> list[int]:
    from workers.analysis import image_order

    if "order" not in request.inputs:
        return [*range(images)]
    return [*map(int, image_order.read_image_order(request.inputs["order"]).images)]


def compute_prefixes(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    from workers.analysis.pregen_intervals import PregenColumns
    from workers.inference import prefix
    from workers.metrics import pregen

    options = ColumnOptions.model_validate(request.parameters)
    model, inputs, encoded, _ = _references_of(request, toolbox)
    prefixes, lengths = prefix.walk_prefixes(model, inputs, encoded, progress), encoded.lengths
    units = _choose_units(options, encoded)
    if units == "words":
        prefixes, lengths = encoded.whole_words(prefixes), encoded.words
    material = PregenColumns(*pregen.make_columns(prefixes, lengths), encoded.image_offsets)
    how = signatures.add_plugin(options.sign_prefix(), checkpoints.sign_plugin(model))
    return _scored(material, pregen.INSTANT, signatures.add_units(how, units))


def _choose_units(options: ColumnOptions, encoded: "EncodedCaptions") -> str | None:
    """Choose the unit of scores where tokens are pieces of words; None where they are words."""
    return None if encoded.word_offsets is None else options.units


def compute_columns(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    from workers.inference import columns as columns_file
    from workers.inference import scoring

    options = ColumnOptions.model_validate(request.parameters)
    asked = {name: request.parameters[name] for name in _OF_COLUMNS if name in request.parameters}
    metadata = {**options.for_metadata(), "checkpoint": request.digests["checkpoint"]}
    if request.parts:
        parts = [columns_file.read_columns(path) for path in request.parts]
        found = columns_file.concatenate_columns([part for part, _ in parts])
        metadata |= {name: told for name, told in parts[0][1].items() if name in _OF_PARTS}
    else:
        model, inputs, encoded, _ = _references_of(request, toolbox)
        how = scoring.ScoringOptions(options.precision, **asked)
        found = scoring.compute_columns(model, inputs, encoded, how, progress)
        units = _choose_units(options, encoded)
        if units == "words":
            found = columns_file.merge_word_pieces(found, encoded.word_offsets)
        told = {"units": units, "plugin": checkpoints.sign_plugin(model)}
        metadata |= {name: each for name, each in told.items() if each is not None}
    return JobResult(lambda path: columns_file.write_columns(path, found, metadata))


def import_columns(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    """Columns that somebody's own code computed, in the form of our own."""
    from workers.inference import columns as columns_file

    units = ColumnOptions.model_validate(request.parameters).units
    found, metadata = columns_file.read_uploaded_columns(request.inputs["columns"], units)
    told = {"brought": request.digests["columns"], **metadata}
    return JobResult(lambda path: columns_file.write_columns(path, found, told))


def score_pregen(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    return _of_columns(request, list(catalogue.PREGEN))


def score_perplexity(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    return _of_columns(request, [catalogue.CORPUS])


def score_bits_per_byte(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    """Bits per byte, whose signature does not say which tokens were scored: models of different
    tokenizers are compared by them.
    """
    from workers.analysis.pregen_intervals import PregenColumns
    from workers.inference import columns as columns_file

    found, metadata = columns_file.read_columns(request.inputs["columns"])
    alike = {name: told for name, told in metadata.items() if name not in _OF_TOKENS}
    material = PregenColumns.of(found, read_references(request))
    return _scored(material, [catalogue.BITS], _how(alike))


def _of_columns(request: JobRequest, names: Sequence[str]) -> JobResult:
    from workers.analysis.pregen_intervals import PregenColumns
    from workers.inference import columns as columns_file

    found, metadata = columns_file.read_columns(request.inputs["columns"])
    return _scored(PregenColumns.of(found), names, _how(metadata))


def _how(metadata: Mapping[str, str]) -> str:
    if "brought" in metadata:
        return signatures.sign_brought_columns(metadata.get("tokenizer"), metadata.get("units"))
    how = ColumnOptions.model_validate(metadata).sign()
    how = signatures.add_plugin(how, metadata.get("plugin"))
    return signatures.add_units(how, metadata.get("units"))


def _scored(material: "PregenColumns", names: Sequence[str], how: str) -> JobResult:
    from workers.analysis import pregen_intervals, resamples

    return make_summary_result(
        ScoreSummary(
            scores=material.scores(names),
            intervals=dict(pregen_intervals.compute_pregen_intervals(material, names)),
            resampling=dict(resamples.RESAMPLING),
            draws=pregen_intervals.pack_pregen_draws(material, names),
            signature=signatures.sign_pregen(how),
        )
    )


def decode_captions(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    """Decode captions to [place in the split, caption] pairs; parts are joined in split order."""
    from workers.inference import decoding, generation

    if request.parts:
        parts = [json.loads(path.read_text("utf-8")) for path in request.parts]
        return _decoded(sorted(pair for part in parts for pair in part))
    model, inputs, _, places = _references_of(request, toolbox)
    asked = request.parameters["decoding"]
    if model.search is None:
        found = decoding.decode_captions(model, inputs, decoding.DecodingOptions(**asked), progress)
    else:
        found = generation.generate_captions(
            model, inputs, generation.override_options(model.search, asked), progress
        )
    return _decoded([[place, _text(model, one)] for place, one in zip(places, found, strict=True)])


def _text(model: "Captioner", caption: "DecodedIds") -> str:
    """The caption's text. One that is longer than people may send fails the task: cut off, it would
    be scored as another caption than the model's.
    """
    from workers.inference import decoding

    text = decoding.detokenize_caption(model, caption)
    if vocabularies.is_caption_too_long(text):
        raise UnusableCheckpoint(
            f"a caption of the model has {len(text):,} characters, and at most {limits.CAPTION:,} "
            f"are scored, of at most {limits.TOKENS:,} words and signs: ask for shorter ones by "
            "max_words, or repair its tokenizer"
        )
    return text


def _decoded(pairs: Sequence[Sequence[Any]]) -> JobResult:
    texts = [text for _, text in pairs]
    summary = DecodingSummary(
        decoded=len(texts),
        distinct=len(set(texts)),
        unbroken=sum(map(tokenizers.is_unbroken, texts)),
        common=CommonCaption.find(texts),
    )
    return JobResult(lambda path: write_json(path, pairs), summary)
