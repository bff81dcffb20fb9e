"""Checkpoints of plug-ins: verified by one task, and read by others only where the plug-in is the
one that has verified them.
"""

import json
from typing import TYPE_CHECKING

from service.contract.errors import InvalidCheckpoint, UnusableCheckpoint
from service.contract.formats import models, plugins
from service.contract.formats.plugins import InstalledPlugin
from service.contract.results import Converted
from workers.jobs.request import Request, Result, summed
from workers.jobs.toolbox import Toolbox

if TYPE_CHECKING:
    from workers.inference.captioners import Captioner

_VERIFIED = "verified"  # the input


def by_plugin(request: Request, toolbox: Toolbox) -> Result:
    """Open a checkpoint by the plug-in that the task names, which tries it out. A tokenizer in it
    is a stranger's: it is opened in the sandbox before.
    """
    from workers.conversion import foreign_files
    from workers.inference.plugins import registry

    asked = InstalledPlugin(**request.parameters["plugin"])
    registry.check_plugin(asked)
    path = request.inputs["package"]
    try:
        facts = models.of_plugin(plugins.read(path))
        if facts["units"] == "pieces":
            foreign_files.check_tokenizer(path, toolbox.box)
        toolbox.model(request.digests["package"], path)
    except InvalidCheckpoint as refused:  # nobody is there who could be refused any more
        raise UnusableCheckpoint(refused.detail) from None
    return summed(Converted(converted={**facts, "plugin": asked.asdict()}))


def model(request: Request, toolbox: Toolbox) -> "Captioner":
    """The captioner of a task that has one as an input."""
    path = request.inputs["checkpoint"]
    verified = request.inputs.get(_VERIFIED)
    if verified is not None:
        found = Converted.model_validate(json.loads(verified.read_text("utf-8"))).converted
        if found.get("plugin") is not None:
            from workers.inference.plugins import registry

            registry.check_plugin(InstalledPlugin(**found["plugin"]))
    return toolbox.model(request.digests["checkpoint"], path)


def signed(captioner: "Captioner") -> str | None:
    """How signatures name the plug-in of a captioner; None where it has none."""
    from workers.inference.plugins.guard import GuardedCaptioner

    return captioner.plugin.signed if isinstance(captioner, GuardedCaptioner) else None
