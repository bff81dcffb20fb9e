"""What a model or a bundle holds, as `prescore check` shows it; what is opened in the sandbox alone
is opened there.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from service.contract import settings
from service.contract.errors import (
    InvalidCheckpoint,
    PluginFailed,
    PluginUnavailable,
    SandboxUnavailable,
    UnusableCheckpoint,
)
from service.contract.formats import (
    bundles,
    checkpoint_header,
    models,
    onnx_bundles,
    packages,
    plugins,
)
from service.contract.formats.bundles import files, judging
from service.contract.formats.checkpoint_header import Description
from service.contract.wording import counted
from workers.files import naming
from workers.progress import Progress

UNSEEN = "not checked"
_STEM = "features."
_SHOWN = {"cell", "size", "layers", "heads"}  # of a config


def of_package(path: Path) -> dict[str, Any]:
    """What a service's worker would make of a model of several files."""
    if models.format_of(path) == "onnx":
        return _of_onnx(path)
    return _of_others(path, models.of_package(path))


def _of_others(path: Path, facts: models.Facts) -> dict[str, Any]:
    from workers.conversion import canonical_checkpoints as of_state_dicts
    from workers.conversion import foreign_files
    from workers.conversion.foreign_files import ConversionLimits

    box = ConversionLimits.of(settings.load())
    known = {name: each for name, each in facts.items() if each is not None}
    try:
        if facts["format"] == "huggingface":
            foreign_files.check_huggingface(path, box)
            return known
        description, tensors = of_state_dicts.convert_package(path, box)
    except SandboxUnavailable as unavailable:
        return known | unseen("what stands beside the tensors is right; they", unavailable)
    parameters = sum(tensor.size for tensor in tensors.values())
    return {"format": "pytorch", **_described(description, parameters)}


def unseen(looked_at: str, unavailable: SandboxUnavailable) -> dict[str, Any]:
    """A fact of what could not be looked at on this machine, for want of a sandbox."""
    return {
        UNSEEN: f"{looked_at} are not checked: {unavailable.detail}. `prescore doctor` says what "
        "the sandbox lacks here; a machine that has it checks the rest"
    }


def of_checkpoint(path: Path) -> dict[str, Any]:
    header = checkpoint_header.read(path)
    checkpoint_header.check_new(header)
    return _described(header.description, header.parameters)


def of_plugin(path: Path) -> dict[str, Any]:
    """With the plug-in where it is installed; a file itself is judged without it, and its tokenizer
    is opened in the sandbox first.
    """
    found = plugins.read(path)
    try:
        tried = {"opened by": _opened_by(path, found)}
    except SandboxUnavailable as unavailable:
        tried = unseen("what the file says of itself is right; tokenizer and tensors", unavailable)
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


def _opened_by(path: Path, found: plugins.PluginHeader) -> str:
    from workers.conversion import foreign_files
    from workers.conversion.foreign_files import ConversionLimits
    from workers.inference.plugins import loader

    if found.units == "pieces":
        foreign_files.check_tokenizer(path, ConversionLimits.of(settings.load()))
    try:
        return str(loader.read_plugin_captioner(path).plugin)
    except PluginUnavailable as error:
        return f"not tried out: {error.detail}"


def _described(description: Description, parameters: int) -> dict[str, Any]:
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
    with packages.opened(path) as package:
        bundle = onnx_bundles.judge(package)
    if find_spec("onnxruntime") is not None:
        _run_once(path, bundle)
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


def _run_once(path: Path, bundle: onnx_bundles.Bundle) -> None:
    """As a service's worker would."""
    from workers.conversion import foreign_files
    from workers.conversion.foreign_files import ConversionLimits
    from workers.inference.onnx import captioner

    box = ConversionLimits.of(settings.load())
    if bundle.manifest.pieces is not None:
        foreign_files.check_tokenizer(path, box)
    captioner.read_onnx_captioner(path, box.memory, sandbox=box.sandbox).close()


def of_bundle(path: Path) -> dict[str, Any]:
    with naming.lines_of(path / bundles.CAPTIONS):
        found = judging.judge(path)
    features, warnings = found.features, _warnings(found)
    if passed_over := _passed_over(path):
        warnings.append(
            f"passed over: {', '.join(passed_over)}: features are read from {bundles.FEATURES}, "
            "which deploy/guide/files.md describes"
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


def with_features(held: dict[str, Any], path: Path, progress: Progress) -> dict[str, Any]:
    """What a bundle holds, after a look at its features' values; UnusableDataset where runs on a
    split would fail for them.
    """
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
    with files.files(path) as (names, _):
        alike = {name for name in names if name.startswith(_STEM) and "/" not in name}
    return sorted(alike - {bundles.FEATURES})


def _warnings(found: judging.Judged) -> list[str]:
    """What a service would warn of when captions are scored on these splits."""
    return [
        f"empty_references: {split}: {counted(odd.references, 'reference')} of "
        f"{counted(odd.images, 'image')} without words, which nothing matches; the first is of "
        f"{odd.first!r:.100}"
        for split, odd in found.wordless.items()
    ]
