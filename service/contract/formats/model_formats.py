"""Formats of models: the one that an uploaded file has, and the facts in its header."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Literal

from prescore import foreign, plain_text
from service.contract.errors import ForeignFormat
from service.contract.formats import (
    checkpoint_header,
    huggingface,
    onnx_bundles,
    packages,
    plugins,
    safetensors_header,
    state_dicts,
)
from service.contract.formats.checkpoint_header import CheckpointDescription, CheckpointHeader
from service.contract.formats.huggingface import adapters
from service.contract.formats.packages import ModelPackage
from service.contract.formats.plugins import PluginHeader

Format = Literal["canonical", "pytorch", "huggingface", "adapter", "onnx", "plugin"]
Facts = dict[str, Any]
_MARKS: Mapping[str, Format] = {  # the first that is there tells
    state_dicts.MAP: "pytorch",
    onnx_bundles.MANIFEST_FILE: "onnx",
    adapters.ADAPTER_CONFIG: "adapter",
    huggingface.CONFIG: "huggingface",
}

_LENGTH = 8  # bytes that say how long a header of safetensors is
_ENOUGH = 1024  # bytes that tell a tar, a zip or another format
_OF_A_TAR = 64 << 10  # bytes in which config.json and the header of the weights stand
# What stands first in the zips of torch.save, numpy and torch.export, which are refused at once. Of
# others it is not known before their list of names is there, at their end.
_FOREIGN_FIRST = re.compile(rb"[^\0]*(\.pkl|\.npy|(\A|/)archive_format)\Z", re.DOTALL)


def count_model_header_bytes(beginning: bytes) -> int:
    """Count the bytes of a file that must be there to judge it, by its beginning."""
    if packages.is_tar(beginning):
        return _OF_A_TAR
    found = safetensors_header.count_header_bytes(beginning)
    return found if found > _LENGTH else _ENOUGH


def may_be_package(stream: IO[bytes]) -> bool:
    """Tell whether a file, or its beginning, is a tar or a zip that may hold a model's files."""
    found = foreign.of_file(stream, stream.seek(0, os.SEEK_END))
    head = stream.read(foreign.HEAD_BYTES)
    stream.seek(0)
    if head.startswith(b"PK"):  # a file inside may make it look like another one: a PyTorch file
        return packages.is_plain_zip(head) and _FOREIGN_FIRST.match(_first_name(head)) is None
    return found is not None and found.is_package


def check_package_beginning(path: Path, stream: IO[bytes], file_bytes: float) -> None:
    """Refuse a package of transformers by its config.json, once its weights have begun; the rest of
    the file need not be there. The names have to be in order: then no file can follow that makes it
    a package of another model.
    """
    if not packages.is_tar(stream.read(_ENOUGH)):
        return
    package = packages.open_partial_package(path, stream, file_bytes)
    names = list(package.files)
    is_over = names == sorted(names) and names[-1] > state_dicts.MAP
    is_onnx = any(name.endswith(".onnx") for name in names)
    has_weights = names[-1].endswith(".safetensors")
    if is_over and has_weights and not is_onnx and _format(package) == "huggingface":
        huggingface.check_transformers_config(package)


def detect_format(path: Path) -> Format | None:
    """Detect the format of the model in a folder, a tar or a zip, or of a plug-in's file; None
    where there is none.
    """
    if not path.is_dir() and not packages.is_packed(path):
        return "plugin" if plugins.is_plugin_file(path) else None
    with packages.open_package(path) as package:
        return _format(package)


def read_file_facts(stream: IO[bytes], file_bytes: float) -> Facts:
    """The facts in the header of a model of one file; `file_bytes` is infinity where nobody knows
    the file's length yet.
    """
    if plugins.is_plugin_stream(stream):
        return describe_plugin(plugins.parse_plugin_header(stream, file_bytes))
    return describe_header(checkpoint_header.parse_checkpoint_header(stream, file_bytes))


def describe_plugin(header: PluginHeader) -> Facts:
    return {
        "format": "plugin",
        "architecture": f"plugin:{header.plugin}",
        "plugin": {"name": header.plugin, "package": None, "version": None},
        "parameters": header.parameters,
        "vocabulary_size": header.vocabulary_size,
        "encoder": header.encoder.model_dump(),
        "feature_size": header.feature_size,
        "units": header.units,
        **({} if header.longest is None else {"longest": header.longest}),
    }


def read_package_facts(path: Path) -> Facts:
    with packages.open_package(path) as package:
        match _format(package):
            case "pytorch":
                return _of_state_dict(package)
            case "onnx":
                return _of_onnx(package)
            case "huggingface":
                return _of_transformers(huggingface.validate_transformers(package))
            case "adapter":
                return _of_adapter(adapters.validate_adapter(package))
        raise ForeignFormat(_unknown(path, package))


def _format(package: ModelPackage) -> Format | None:
    return next((form for mark, form in _MARKS.items() if mark in package.files), None)


def describe_header(header: CheckpointHeader) -> Facts:
    checkpoint_header.check_new_header(header)
    return {**describe_checkpoint(header.description), "parameters": header.parameters}


def describe_checkpoint(description: CheckpointDescription) -> Facts:
    inputs = description.config.inputs
    return {
        "architecture": description.architecture,
        **({} if inputs == "features" else {"inputs": inputs}),
        "config": description.config.model_dump(exclude_none=True),
        "vocabulary_size": len(description.vocabulary),
        "encoder": description.encoder.model_dump(),
    }


def _of_state_dict(package: ModelPackage) -> Facts:
    found = state_dicts.read_state_dict(package)
    return {
        "format": "pytorch",
        "architecture": found.map.architecture,
        **({} if found.map.inputs == "features" else {"inputs": found.map.inputs}),
        "vocabulary_size": len(found.by_id),
        "encoder": found.encoder.model_dump(),
    }


def _of_transformers(
    found: huggingface.TransformersCaptioner,
) -> Facts:
    return {
        "format": "huggingface",
        "architecture": found.architecture,
        "parameters": found.parameters,
        "picture_products": found.products,
        "prompt": found.prompt,
        "vocabulary_size": found.vocabulary,
        "encoder": None,  # its own
        "inputs": "pixels",
        "units": "pieces",
        "beams": found.generation.num_beams,
        "longest": found.longest,
    }


def _of_adapter(found: adapters.LoraAdapter) -> Facts:
    """Facts that are known without the base, which has the others."""
    return {
        "format": "adapter",
        "architecture": "lora",
        "base": {"name": plain_text.quoted(found.base), "digest": None},
        "vocabulary_size": None,
        "encoder": None,
        "inputs": "pixels",
        "units": "pieces",
    }


def _of_onnx(package: ModelPackage) -> Facts:
    """`feature_size`, of features, is what a canonical checkpoint's config says."""
    found = onnx_bundles.validate_onnx_bundle(package)
    manifest = found.manifest
    return {
        "format": "onnx",
        "architecture": "onnx",
        "vocabulary_size": found.size,
        "encoder": manifest.encoder and manifest.encoder.model_dump(),
        "parameters": found.parameters,
        "feature_size": manifest.feature_size,
        "inputs": manifest.inputs,
        "units": manifest.units,
    }


def _unknown(path: Path, package: ModelPackage) -> str:
    refusal = foreign.refusal(foreign.of_path(path), foreign.CHECKPOINT)
    there = ", ".join(sorted(package.files)[:10])
    return (
        f"{refusal or f'expected {foreign.CHECKPOINT}, found other files'}. A package of a state "
        f"dict has the model's tensors, {state_dicts.MAP} and {state_dicts.WORDS} "
        f"(deploy/guide/bring-a-model.md), one of transformers has {huggingface.CONFIG}, an "
        f"adapter {adapters.ADAPTER_CONFIG}; there: {there:.300}"
    )


def _first_name(head: bytes) -> bytes:
    length = int.from_bytes(head[26:28], "little")
    return head[packages.LOCAL_HEADER : packages.LOCAL_HEADER + length]
