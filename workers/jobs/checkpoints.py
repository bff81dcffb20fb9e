"""Checkpoints that came in another form than Prescore's: converted, or verified."""

from pathlib import Path
from typing import TYPE_CHECKING

from service.contract.errors import RequestRefused, UnusableCheckpoint
from service.contract.formats import models
from service.contract.results import Converted
from workers.jobs import verified
from workers.jobs.request import Request, Result, summed
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from workers.conversion.foreign_files import ConversionLimits


def prepare(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    path = request.inputs["package"]
    if "plugin" in request.parameters:
        return verified.by_plugin(request, toolbox)
    try:
        facts = models.of_package(path)
        match facts["format"]:
            case "pytorch":
                return _converted(path, toolbox.box)
            case "onnx":
                _run_graphs(request, toolbox, facts)
            case "huggingface":
                _run_transformers(path, toolbox.box)
        return summed(Converted(converted=facts))
    except RequestRefused as refused:  # nobody is there who could be refused any more
        raise UnusableCheckpoint(refused.detail) from None


def _run_transformers(path: Path, box: "ConversionLimits") -> None:
    """What it is, its judge has said, and not the child, in which it may have run code."""
    from workers.conversion import foreign_files

    foreign_files.check_huggingface(path, box)


def _run_graphs(request: Request, toolbox: Toolbox, facts: models.Facts) -> None:
    """The model stays open for the tasks that wait for this one."""
    from workers.conversion import foreign_files

    path = request.inputs["package"]
    if facts["units"] == "pieces":
        foreign_files.check_tokenizer(path, toolbox.box)
    toolbox.model(request.digests["package"], path)


def _converted(path: Path, box: "ConversionLimits") -> Result:
    """A state dict with its map and its words."""
    from workers.conversion import canonical_checkpoints
    from workers.conversion import canonical_checkpoints as of_state_dicts

    description, tensors = of_state_dicts.convert_package(path, box)
    parameters = sum(tensor.size for tensor in tensors.values())
    return Result(
        lambda path: canonical_checkpoints.write_canonical(path, description, tensors),
        Converted(converted={**models.described(description), "parameters": parameters}),
    )
