"""Contents of models, bundles and captions, as `prescore check` shows them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prescore import InvalidArgument
from prescore.cli.text import group_warnings
from prescore.files import captions
from service.contract import limits, settings
from service.contract.api.request_parts import CaptionInput
from service.contract.errors import (
    InvalidCheckpoint,
    PluginFailed,
    PluginUnavailable,
    RequestRefused,
    SandboxUnavailable,
    UnusableCheckpoint,
)
from service.contract.formats import (
    bundles,
    checkpoint_header,
    model_formats,
    onnx_bundles,
    outputs,
    packages,
    plugins,
)
from service.contract.formats.bundles import files, validation
from service.contract.formats.checkpoint_header import CheckpointDescription
from service.contract.metrics import tokenizers
from service.contract.wording import count_noun, describe_field_error
from workers import files as naming
from workers.offline.sources import DatasetSource
from workers.progress import Progress

UNSEEN = "not checked"
_STEM = "features."
_SHOWN = {"cell", "size", "layers", "heads"}  # of a config


def describe_package(path: Path) -> dict[str, Any]:
    """Describe a model of several files as a service's worker would."""
    if model_formats.detect_format(path) == "onnx":
        return _of_onnx(path)
    return _of_others(path, model_formats.read_package_facts(path))


def _of_others(path: Path, facts: model_formats.Facts) -> dict[str, Any]:
    from workers.conversion import canonical_checkpoints, foreign_files
    from workers.conversion.foreign_files import ConversionLimits

    box = ConversionLimits.of(settings.load_settings())
    known = {name: each for name, each in facts.items() if each is not None}
    try:
        if facts["format"] == "huggingface":
            foreign_files.check_huggingface(path, box)
            return known
        if facts["format"] == "adapter":
            foreign_files.check_adapter(path, box)
            return {"format": "adapter", "base": facts["base"]["name"] or None}
        description, tensors = canonical_checkpoints.convert_package(path, box)
    except SandboxUnavailable as unavailable:
        return known | describe_unseen("what stands beside the tensors is right; they", unavailable)
    parameters = sum(tensor.size for tensor in tensors.values())
    return {"format": "pytorch", **_described(description, parameters)}


def describe_unseen(looked_at: str, unavailable: SandboxUnavailable) -> dict[str, Any]:
    """A fact of what could not be looked at on this machine, for want of a sandbox."""
    return {
        UNSEEN: f"{looked_at} are not checked: {unavailable.detail}. `prescore doctor` says what "
        "the sandbox lacks here; a machine that has it checks the rest"
    }


def describe_checkpoint(path: Path) -> dict[str, Any]:
    header = checkpoint_header.read_checkpoint_header(path)
    checkpoint_header.check_new_header(header)
    return _described(header.description, header.parameters)


def describe_plugin_checkpoint(path: Path) -> dict[str, Any]:
    """With the plug-in where it is installed; a file itself is judged without it, and its tokenizer
    is opened in the sandbox first.
    """
    found = plugins.read_plugin_header(path)
    try:
        tried = {"opened by": _opened_by(path)}
    except SandboxUnavailable as unavailable:
        tried = describe_unseen(
            "what the file says of itself is right; tokenizer and tensors", unavailable
        )
    except (PluginFailed, UnusableCheckpoint) as error:  # a service's task would fail
        raise InvalidCheckpoint(error.detail) from None
    return {
        "format": "plugin",
        "plug-in": found.plugin,
        **tried,
        "feature_size": found.feature_size,
        "vocabulary_size": found.vocabulary_size,
        "units": found.units,
        "encoder": str(found.encoder),
        "parameters": found.parameters,
    }


def _opened_by(path: Path) -> str:
    from workers.inference.plugins import loader

    sandbox = settings.load_settings().sandbox
    try:
        return str(loader.read_plugin_captioner(path, sandbox=sandbox).plugin)
    except PluginUnavailable as error:
        return f"not tried out: {error.detail}"


def _described(description: CheckpointDescription, parameters: int) -> dict[str, Any]:
    config = description.config
    return {
        "architecture": description.architecture,
        **({} if config.inputs == "features" else {"inputs": config.inputs}),
        **config.model_dump(exclude_none=True, include=_SHOWN),
        "feature_size": config.feature_size,
        "normalize": config.normalize,
        "vocabulary_size": len(description.vocabulary),
        "tokenizer": description.tokenizer,
        "encoder": str(description.encoder),
        "parameters": parameters,
    }


def _of_onnx(path: Path) -> dict[str, Any]:
    with packages.open_package(path) as package:
        bundle = onnx_bundles.validate_onnx_bundle(package)
    if find_spec("onnxruntime") is not None:
        _run_once(path)
    manifest, pictures = bundle.manifest, bundle.manifest.preprocessing
    return {
        "format": "onnx",
        "graphs": ", ".join(bundle.graphs),
        "inputs": manifest.inputs,
        "units": manifest.units,
        **({} if pictures is None else {"pictures": " x ".join(map(str, pictures.shape))}),
        **({} if pictures is not None else {"feature_size": manifest.feature_size}),
        "vocabulary_size": bundle.size,
        **({} if manifest.tokenizer is None else {"tokenizer": manifest.tokenizer}),
        **({} if manifest.encoder is None else {"encoder": str(manifest.encoder)}),
        "parameters": bundle.parameters,
    }


def _run_once(path: Path) -> None:
    """Run the bundle once, as a service's worker would."""
    from workers.conversion.foreign_files import ConversionLimits
    from workers.inference.onnx import captioner

    box = ConversionLimits.of(settings.load_settings())
    captioner.read_onnx_captioner(path, box.memory, sandbox=box.sandbox).close()


def describe_bundle(path: Path) -> dict[str, Any]:
    with naming.name_file_in_errors(path / bundles.CAPTIONS):
        found = validation.validate_bundle(path)
    features, warnings = found.features, _warnings(found)
    if passed_over := _passed_over(path):
        warnings.append(
            f"passed over: {', '.join(passed_over)}: features are read from {bundles.FEATURES}, "
            "which deploy/guide/datasets.md describes"
        )
    return {
        "splits": found.splits,
        "features": None
        if features is None
        else {
            "images": len(features.ids),
            **({} if features.inputs == "features" else {features.inputs: features.places}),
            "size": features.size,
            "encoder": str(features.encoder),
        },
        **({"warnings": warnings} if warnings else {}),
    }


def add_feature_facts(held: dict[str, Any], path: Path, progress: Progress) -> dict[str, Any]:
    """Add the facts of a bundle's features; UnusableDataset where runs on a split would fail."""
    from workers.inference import features

    images: dict[str, list[str]] = {}
    for item in bundles.read_items(path):
        images.setdefault(item.split, []).append(item.image)
    warnings = [
        f"no features: {split}: no image of it has features, so captions alone can be scored on it"
        for split in features.check_features(path, images, progress)
    ]
    return held | {"warnings": [*held.get("warnings", ()), *warnings]} if warnings else held


def _passed_over(path: Path) -> list[str]:
    """Files that look as if they were features, and that nobody reads."""
    with files.open_bundle_files(path) as (names, _):
        alike = {name for name in names if name.startswith(_STEM) and "/" not in name}
    return sorted(alike - {bundles.FEATURES})


def _warnings(found: validation.BundleFacts) -> list[str]:
    """List a service's warnings when captions are scored on these splits."""
    return [
        f"empty_references: {split}: {count_noun(odd.references, 'reference')} of "
        f"{count_noun(odd.images, 'image')} without words, which nothing matches; the first is of "
        f"{odd.first!r:.100}"
        for split, odd in found.wordless.items()
    ]


def fit_captions(
    given: Sequence[tuple[str, str]],
    source: DatasetSource,
    *,
    subset: bool | None,
    tokenizer: str = tokenizers.USUAL,
) -> outputs.ArrangedCaptions:
    """Arrange (image, caption) pairs in the split's order. RequestRefused where they do not fit.

    `subset`: whether some images may lack a caption; None: they may not, and there is no such
    option to tell of.
    """
    references = [item.references for item in source.items]
    advice = "" if subset is None else "; add `--subset` to score a part"
    found = outputs.arrange_captions(
        *(given, source.places, references, str(source)),
        subset=bool(subset),
        reader=outputs.WordFinder(tokenizer, partial(tokenizers.finds_words, tokenizer)),
        advice=advice,
    )
    if found.problems:
        more = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
        raise RequestRefused(f"captions do not fit {source}: {_said(*found.problems[0])}{more}")
    return found


def _said(pointer: str, detail: str) -> str:
    index = pointer.removeprefix("/").partition("/")[0]
    return f"item {int(index) + 1}: {detail}" if index else detail


_HEAD_BYTES = 4096
_MOST_WARNINGS = 20  # kinds of warnings


def describe_captions(path: Path, source: DatasetSource | None, *, subset: bool) -> dict[str, Any]:
    """Count captions, of a `source`'s images if there is one. Raises where something is wrong."""
    given = _read(path)
    if len(given) > limits.CAPTIONS:
        raise RequestRefused(f"expected at most {limits.CAPTIONS} captions, found {len(given)}")
    for number, one in enumerate(given, start=1):
        _check(number, one)
    found: dict[str, Any] = {"captions": len(given), "first_image": given[0]["image"]}
    pairs = [(one["image"], one["caption"]) for one in given]
    if source is None:
        warnings: Iterable[Mapping[str, Any]] = outputs.warn_of_captions(pairs)
    else:
        arranged = fit_captions(pairs, source, subset=subset)
        found["images"] = f"{len(arranged.pairs)} of {len(source.items)} of {source}"
        warnings = arranged.warnings
    if told := _warning_lines(warnings):
        found["warnings"] = told
    return found


def _warning_lines(warnings: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each kind of warning, with the first image that it is of."""
    rows = group_warnings((one["code"], one["detail"], one["image"]) for one in warnings)
    lines = [": ".join(filter(None, row)) for row in rows]
    more = [f"and {len(lines) - _MOST_WARNINGS} kinds more"] if len(lines) > _MOST_WARNINGS else []
    return [*lines[:_MOST_WARNINGS], *more]


def _read(path: Path) -> list[dict[str, str]]:
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    if not head.strip():
        raise RequestRefused(f"expected captions in {path}, found an empty file")
    try:
        given = captions.read_captions(path)
    except InvalidArgument:
        if b'"references"' in head and path.name == bundles.CAPTIONS:
            folder = path.absolute().parent
            raise RequestRefused(
                f"{path} has the references of a dataset bundle: check its folder, "
                f"`prescore check {folder}`"
            ) from None
        raise
    if not given:
        raise RequestRefused(f"expected captions in {path}, found none")
    return given


def _check(number: int, one: dict[str, str]) -> None:
    try:
        CaptionInput(**one)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise RequestRefused(f"item {number}: {field}: {describe_field_error(first)}") from None
