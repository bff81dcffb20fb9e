"""Checkpoints that came in another form than Prescore's: converted, or verified."""

from pathlib import Path
from typing import TYPE_CHECKING

from service.contract.errors import RequestRefused, UnusableCheckpoint
from service.contract.formats import models
from service.contract.results import Converted
from workers.jobs.request import Request, Result, summed
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from workers.conversion.sandboxed import Box


def prepare(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    path = request.inputs["package"]
    try:
        facts = models.of_package(path)
        if facts["format"] == "pytorch":
            return _converted(path, toolbox.box)
        return _verified(path, toolbox.box, facts)
    except RequestRefused as refused:  # nobody is there who could be refused any more
        raise UnusableCheckpoint(refused.detail) from None


def _verified(path: Path, box: "Box", facts: models.Facts) -> Result:
    """What transformers has saved, which is evaluated as it is. What it is, its judge has said, and
    not the child, in which it may have run code.
    """
    from workers.conversion import sandboxed

    sandboxed.transformers(path, box)
    return summed(Converted(converted=facts))


def _converted(path: Path, box: "Box") -> Result:
    """A state dict with its map and its words."""
    from workers.conversion import converting
    from workers.conversion import packages as of_state_dicts

    description, tensors = of_state_dicts.convert(path, box)
    parameters = sum(tensor.size for tensor in tensors.values())
    return Result(
        lambda path: converting.write(path, description, tensors),
        Converted(converted={**models.described(description), "parameters": parameters}),
    )
