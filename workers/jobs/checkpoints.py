"""Jobs of checkpoints in other forms than Prescore's: conversion and verification."""

import json
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from prescore import model_types
from service.contract import assets
from service.contract.errors import (
    CheckpointMismatch,
    InvalidCheckpoint,
    RequestRefused,
    UnusableCheckpoint,
)
from service.contract.formats import model_formats, plugins
from service.contract.formats.plugins import InstalledPlugin
from service.contract.results import ConversionSummary
from workers.jobs.request import JobRequest, JobResult, make_summary_result
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from workers.conversion.foreign_files import ConversionLimits
    from workers.inference.captioners import Captioner


def prepare_checkpoint(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    from workers.conversion import foreign_files

    path = request.inputs["package"]
    if "plugin" in request.parameters:
        return _verify_by_plugin(request, toolbox)
    if "base" in request.parameters:
        return _verify_adapter(request, toolbox)
    try:
        facts = model_formats.read_package_facts(path)
        match facts["format"]:
            case "pytorch":
                return _converted(path, toolbox.box)
            case "onnx":
                _open_model(request, toolbox)
            case "huggingface":
                foreign_files.check_huggingface(path, toolbox.box)
        return make_summary_result(ConversionSummary(converted=facts))
    except RequestRefused as refused:  # nobody is there who could be refused any more
        raise UnusableCheckpoint(refused.detail) from None


def _open_model(request: JobRequest, toolbox: Toolbox) -> None:
    """Open a model, which stays open for the tasks that wait for this one."""
    toolbox.model(request.digests["package"], request.inputs["package"])


def _converted(path: Path, box: "ConversionLimits") -> JobResult:
    """A state dict with its map and its words."""
    from workers.conversion import canonical_checkpoints

    description, tensors = canonical_checkpoints.convert_package(path, box)
    parameters = sum(tensor.size for tensor in tensors.values())
    return JobResult(
        lambda path: canonical_checkpoints.write_canonical(path, description, tensors),
        ConversionSummary(
            converted={**model_formats.describe_checkpoint(description), "parameters": parameters}
        ),
    )


def _verify_by_plugin(request: JobRequest, toolbox: Toolbox) -> JobResult:
    """Open a checkpoint by the plug-in that the task names, which tries it out."""
    from workers.inference.plugins import registry

    asked = InstalledPlugin(**request.parameters["plugin"])
    registry.check_plugin(asked)
    try:
        header = plugins.read_plugin_header(request.inputs["package"])
        facts = model_formats.describe_plugin(header)
        _open_model(request, toolbox)
    except InvalidCheckpoint as refused:  # nobody is there who could be refused any more
        raise UnusableCheckpoint(refused.detail) from None
    return make_summary_result(ConversionSummary(converted={**facts, "plugin": asked.asdict()}))


def _verify_adapter(request: JobRequest, toolbox: Toolbox) -> JobResult:
    """Read an adapter in the sandbox, then open it with its base, which stays open."""
    from workers.conversion import foreign_files

    path, base = request.inputs["package"], request.parameters["base"]
    place = assets.find_base_by_digest(base.removeprefix("sha256:"), toolbox.places).path
    try:
        foreign_files.check_adapter(path, toolbox.box)
        toolbox.adapted_model(request.digests["package"], path, base)
        facts = model_formats.read_package_facts(place)
    except RequestRefused as refused:  # nobody is there who could be refused any more
        raise UnusableCheckpoint(refused.detail) from None
    converted = {**facts, "format": "adapter", "base_digest": base}
    return make_summary_result(ConversionSummary(converted=converted))


def open_captioner(request: JobRequest, toolbox: Toolbox) -> "Captioner":
    """The captioner of a task that has one as an input, after the task's prompt if it has one."""
    verified = request.inputs.get("verified")
    if verified is not None:
        found = ConversionSummary.model_validate(json.loads(verified.read_text("utf-8"))).converted
        if found.get("plugin") is not None:
            from workers.inference.plugins import registry

            registry.check_plugin(InstalledPlugin(**found["plugin"]))
        if found["format"] == "adapter":
            digest, path = request.digests["checkpoint"], request.inputs["checkpoint"]
            adapted = toolbox.adapted_model(digest, path, found["base_digest"])
            return set_prompt(adapted, request.parameters.get("prompt"))
    model = toolbox.model(request.digests["checkpoint"], request.inputs["checkpoint"])
    return set_prompt(model, request.parameters.get("prompt"))


def set_prompt(captioner: "Captioner", prompt: str | None) -> "Captioner":
    """The captioner after a prompt; after its own where this is None."""
    if prompt is None:
        return captioner
    from workers.inference.huggingface.image_text_captioner import ImageTextCaptioner

    if not isinstance(captioner, ImageTextCaptioner):
        raise CheckpointMismatch(
            "this captioner reads no prompt before a caption: leave prompt out"
        )
    try:
        return captioner.with_prompt(prompt)
    except UnusableCheckpoint as refused:  # the checkpoint itself has been verified
        raise CheckpointMismatch(refused.detail) from None


def sign_plugin(captioner: "Captioner") -> str | None:
    """Name of a captioner's plug-in in signatures, or of the type that an operator has let in
    without a test; None where it has neither.
    """
    from workers.inference.plugins.guard import GuardedCaptioner

    judged = getattr(captioner, "judged", None)  # of transformers, which others need not import
    if judged is not None:
        own = f"{judged.model_type}@transformers-{metadata.version('transformers')}"
        return None if judged.model_type in model_types.READ else own
    return captioner.plugin.signed if isinstance(captioner, GuardedCaptioner) else None
