"""Checkpoints that came in another form than Prescore's: converted, or verified."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from service.contract.errors import InvalidCheckpoint, RequestRefused, UnusableCheckpoint
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
    path = request.inputs["package"]
    if "plugin" in request.parameters:
        return verify_by_plugin(request, toolbox)
    try:
        facts = model_formats.read_package_facts(path)
        match facts["format"]:
            case "pytorch":
                return _converted(path, toolbox.box)
            case "onnx":
                _run_graphs(request, toolbox, facts)
            case "huggingface":
                _run_transformers(path, toolbox.box)
        return make_summary_result(ConversionSummary(converted=facts))
    except RequestRefused as refused:  # nobody is there who could be refused any more
        raise UnusableCheckpoint(refused.detail) from None


def _run_transformers(path: Path, box: "ConversionLimits") -> None:
    """Run a model of transformers in a child; its kind was told before, by its judge."""
    from workers.conversion import foreign_files

    foreign_files.check_huggingface(path, box)


def _run_graphs(request: JobRequest, toolbox: Toolbox, facts: model_formats.Facts) -> None:
    """The model stays open for the tasks that wait for this one."""
    from workers.conversion import foreign_files

    path = request.inputs["package"]
    if facts["units"] == "pieces":
        foreign_files.check_tokenizer(path, toolbox.box)
    toolbox.model(request.digests["package"], path)


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


_VERIFIED = "verified"  # the input


def verify_by_plugin(request: JobRequest, toolbox: Toolbox) -> JobResult:
    """Open a checkpoint by the plug-in that the task names, which tries it out. A tokenizer in it
    is a stranger's: it is opened in the sandbox before.
    """
    from workers.conversion import foreign_files
    from workers.inference.plugins import registry

    asked = InstalledPlugin(**request.parameters["plugin"])
    registry.check_plugin(asked)
    path = request.inputs["package"]
    try:
        facts = model_formats.describe_plugin(plugins.read_plugin_header(path))
        if facts["units"] == "pieces":
            foreign_files.check_tokenizer(path, toolbox.box)
        toolbox.model(request.digests["package"], path)
    except InvalidCheckpoint as refused:  # nobody is there who could be refused any more
        raise UnusableCheckpoint(refused.detail) from None
    return make_summary_result(ConversionSummary(converted={**facts, "plugin": asked.asdict()}))


def open_captioner(request: JobRequest, toolbox: Toolbox) -> "Captioner":
    """The captioner of a task that has one as an input."""
    path = request.inputs["checkpoint"]
    verified = request.inputs.get(_VERIFIED)
    if verified is not None:
        found = ConversionSummary.model_validate(json.loads(verified.read_text("utf-8"))).converted
        if found.get("plugin") is not None:
            from workers.inference.plugins import registry

            registry.check_plugin(InstalledPlugin(**found["plugin"]))
    return toolbox.model(request.digests["checkpoint"], path)


def sign_plugin(captioner: "Captioner") -> str | None:
    """Name of a captioner's plug-in in signatures; None where it has none."""
    from workers.inference.plugins.guard import GuardedCaptioner

    return captioner.plugin.signed if isinstance(captioner, GuardedCaptioner) else None
