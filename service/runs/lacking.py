"""Why a run does not have what somebody asks it for, and whether it is still to come."""

from prescore.models.evaluations import Evaluation
from prescore.models.learned import Learned
from prescore.models.runs import Work
from service.runs import base

_Run = Evaluation | Learned


def told(run: _Run, what: str, *, work: str) -> str:
    """A sentence on `what`, which the work of this name makes."""
    maker = next((each for each in run.works if each.name == work), None)
    if maker is None:
        return f"{run.id} has no {what}: it was not asked for"
    if not base.is_over(run) and maker.status not in ("failed", "unavailable"):
        return f"{run.id} has no {what} yet: its work {work} is {maker.status}"
    return f"{run.id} has no {what}: {_ended(run, maker)}"


def _ended(run: _Run, maker: Work) -> str:
    why = "" if maker.error is None else f": {maker.error.detail}"
    match maker.status:
        case "failed":
            return f"its work {maker.name} failed{why}"
        case "unavailable":
            return f"its work {maker.name} is unavailable{why}"
        case _:
            return f"it {'was canceled' if run.status == 'canceled' else run.status} before"
