"""Checkpoints in Prescore's own form, of what came in another's."""

from service.contract.errors import RequestRefused, UnusableCheckpoint
from service.contract.formats import models
from service.contract.results import Converted
from workers.jobs.request import Request, Result
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress


def convert(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers.conversion import converting, packages

    try:
        description, tensors = packages.convert(request.inputs["package"], toolbox.box)
    except RequestRefused as refused:  # nobody is there who could be refused any more
        raise UnusableCheckpoint(refused.detail) from None
    parameters = sum(tensor.size for tensor in tensors.values())
    return Result(
        lambda path: converting.write(path, description, tensors),
        Converted(converted={**models.described(description), "parameters": parameters}),
    )
