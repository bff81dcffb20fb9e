"""What has to be done before a checkpoint that is not read as it is can be used; where a plug-in
opens it, as the workers have that plug-in now.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import Connection

from prescore.models.base import RunProblem
from service.contract.errors import PluginUnavailable
from service.contract.formats.plugins import GROUP
from service.contract.plan import planning
from service.contract.plan.tasks import Task
from service.engine.kept import plugins


def task_of(
    connection: Connection, digest: str, description: Mapping[str, Any]
) -> Task | RunProblem:
    """The task that converts or verifies it, or why there is none."""
    asked = description.get("plugin")
    if asked is None:
        return planning.plan_conversion(digest)
    told = plugins.told(connection)
    if asked["name"] in told:
        return planning.plan_conversion(digest, told[asked["name"]].asdict())
    there = ", ".join(map(str, told.values())) or "none"
    detail = (
        f"no worker of this service has the plug-in {asked['name']!r}; plug-ins there: "
        f"{there:.500}. Install a package with this entry point of {GROUP} on the workers, and "
        "start them again"
    )
    return RunProblem(code=PluginUnavailable.code, detail=detail)
