"""Conversions: tasks that make a checkpoint in Prescore's own form, or verify one."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.base import RunProblem
from service.contract import limits, results
from service.contract.askers import LOCAL
from service.contract.errors import LimitReached, MetricUnavailable, PluginUnavailable
from service.contract.formats.plugins import GROUP
from service.contract.plan import planning, prices
from service.contract.plan.tasks import UNFINISHED, Task
from service.contract.results import ConversionSummary
from service.engine import fleet_status, intake, summaries
from service.engine.records import Records, count_rows, in_batches
from service.engine.service_parts import ServiceParts
from service.engine.tables import checkpoints, task_rows

ConversionState = Literal["ready", "converting", "invalid"]

_NO_CHECKPOINT = "invalid_checkpoint"  # an error that another attempt does not change
_DEADLINE = 3600.0  # seconds
_KIND = "checkpoint"  # of the tasks
_SOON = 10  # seconds until the next try
_CANCELED = RunProblem(
    code="canceled",
    detail="the run for which it was converted was canceled; the next one, or PUT, begins again",
)


@dataclass(frozen=True)
class Conversion:
    """`result`: the digest of the file in our own form, and `facts`, what its header says."""

    state: ConversionState
    problem: RunProblem | None = None
    result: str | None = None
    facts: Mapping[str, Any] | None = None

    @property
    def is_hopeless(self) -> bool:
        return self.problem is not None and self.problem.code == _NO_CHECKPOINT


def check_unfinished_conversions(records: Records, caller: str) -> None:
    """Raise LimitReached where the caller's team has as many unfinished ones as it may have."""
    team, is_key, _ = caller.partition("/")
    of = task_rows.c.caller
    theirs = of.startswith(f"{team}/", autoescape=True) if is_key else of == caller
    unfinished = task_rows.c.kind == _KIND, task_rows.c.status.in_(UNFINISHED)
    with records.reading() as connection:
        found = count_rows(connection, task_rows, *unfinished, theirs)
    if found >= limits.CONVERSIONS:
        raise LimitReached(
            f"{found} checkpoints that you have sent are not verified yet, and at most "
            f"{limits.CONVERSIONS} may wait: the file is stored; send it again when some are ready",
            retry_after=_SOON,
        )


def find_conversion(connection: Connection, task: Task) -> Conversion:
    rows = sa.select(task_rows).where(task_rows.c.key == task.key)
    row: Any = connection.execute(rows).first()
    match row and row.status:
        case "done":
            facts = read_facts(connection, {"": task})[""]
            return Conversion("ready", result=row.result, facts=facts)
        case "failed" | "unavailable":
            return Conversion("invalid", RunProblem.model_validate_json(row.error))
        case "canceled":
            return Conversion("invalid", _CANCELED)
    return Conversion("converting")


def read_facts(connection: Connection, tasks: Mapping[str, Task]) -> dict[str, Mapping[str, Any]]:
    """The facts that these tasks have found, by any names, of those that are done."""
    keys = {task.key: name for name, task in tasks.items()}
    found: dict[str, Mapping[str, Any]] = {}
    for batch in in_batches(keys):
        done = sa.select(task_rows).where(task_rows.c.key.in_(batch), task_rows.c.status == "done")
        rows = [dict(row) for row in connection.execute(done).mappings()]
        summaries.fill_summaries(connection, rows)
        told = ((row["key"], results.parse_summary(row, ConversionSummary)) for row in rows)
        found |= {keys[key]: of.converted for key, of in told if of is not None}
    return found


def begin_conversion(
    parts: ServiceParts,
    task: Task,
    caller: str = LOCAL,
    check_room: Callable[[], None] = lambda: None,
) -> None:
    """Begin a conversion unless it has begun or is hopeless, or the upload was deleted.
    `check_room` is called before it is queued, and refuses it by an error.
    """
    uploads = checkpoints.c.digest.in_([str(of) for of in task.inputs.values()])
    with parts.records.reading() as connection:
        begun = connection.execute(
            sa.select(task_rows.c.status).where(
                task_rows.c.key == task.key, task_rows.c.status.in_((*UNFINISHED, "done"))
            )
        ).first()
        needs_room = begun is None and not find_conversion(connection, task).is_hopeless
    if needs_room:
        check_room()
    with parts.records.transaction() as connection:
        is_there = connection.execute(sa.select(checkpoints.c.digest).where(uploads)).first()
        if is_there and not find_conversion(connection, task).is_hopeless:
            planned = prices.price_tasks([task], prices.USUAL)
            until = time.time() + _DEADLINE
            intake.add_tasks(parts.records, connection, planned, until, caller)
    parts.queue.flush(parts.records)


def task_of(
    connection: Connection, digest: str, description: Mapping[str, Any]
) -> Task | RunProblem:
    """The task that converts or verifies it, or why there is none; of an adapter, by a description
    that `adapters.bind_base` has completed.
    """
    if description.get("format") == "adapter":
        if "unbound" in description:
            return RunProblem(code=MetricUnavailable.code, detail=description["unbound"])
        return planning.plan_conversion(digest, base=description["base"]["digest"])
    asked = description.get("plugin")
    if asked is None:
        return planning.plan_conversion(digest)
    told = fleet_status.read_plugins(connection)
    if asked["name"] in told:
        return planning.plan_conversion(digest, told[asked["name"]].asdict())
    there = ", ".join(map(str, told.values())) or "none"
    detail = (
        f"no worker of this service has the plug-in {asked['name']!r}; plug-ins there: "
        f"{there:.500}. Install a package with this entry point of {GROUP} on the workers, and "
        "start them again"
    )
    return RunProblem(code=PluginUnavailable.code, detail=detail)
