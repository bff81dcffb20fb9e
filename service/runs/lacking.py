"""Why a run does not have what somebody asks it for, and whether it is still to come."""

from prescore.models.evaluations import Evaluation
from prescore.models.learned import Learned
from prescore.models.runs import Task
from service.runs import base

_Run = Evaluation | Learned


def told(run: _Run, what: str, *, task: str) -> str:
    """A sentence on `what`, which the task of this name makes."""
    maker = next((each for each in run.tasks if each.name == task), None)
    if maker is None:
        return f"{run.id} has no {what}: it was not asked for"
    if not base.is_over(run) and maker.status not in ("failed", "unavailable"):
        return f"{run.id} has no {what} yet: its task {task} is {maker.status}"
    return f"{run.id} has no {what}: {_ended(run, maker)}"


def _ended(run: _Run, maker: Task) -> str:
    why = "" if maker.error is None else f": {maker.error.detail}"
    match maker.status:
        case "failed":
            return f"its task {maker.name} failed{why}"
        case "unavailable":
            return f"its task {maker.name} is unavailable{why}"
        case _:
            return f"it {'was canceled' if run.status == 'canceled' else run.status} before"
