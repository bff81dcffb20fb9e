"""Store of runs: inserts, finds and cancels them, whatever their kind."""

import json
import secrets
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from pydantic import BaseModel
from sqlalchemy.engine import Connection, Row

from prescore.models import runs as answers
from prescore.models.base import RunProblem
from prescore.models.evaluations import Evaluation
from prescore.models.identifiers import RUN_ID
from prescore.models.learned import Learned
from prescore.models.runs import ENDED, DatasetPinned, Oddity, Progress, Run
from service.access import audit
from service.contract.api.field_types import moment, moment_or_none
from service.contract.askers import LOCAL
from service.contract.errors import NotFound
from service.contract.plan import prices
from service.contract.plan.planning import Plan
from service.contract.plan.prices import TaskSizes
from service.contract.plan.tasks import TERMINAL, Task
from service.engine import history, intake, leases, summaries, task_expiry, tenancy
from service.engine.history import settle_run
from service.engine.records import Records, in_batches
from service.engine.service_parts import ServiceParts
from service.engine.tables import labels, run_names, run_tasks, runs, task_rows
from service.stored.datasets import PinnedSplit

_Answer = TypeVar("_Answer", bound=Run)
_Kept = TypeVar("_Kept", bound=BaseModel)
# The event log, which is large, is read with the events alone.
ROW = sa.select(*(column for column in runs.c if column is not runs.c.event_log))
_STATE = sa.select(runs.c.version, runs.c.status).where(  # built once, since every poll runs it
    runs.c.id == sa.bindparam("identity")
)


@dataclass(frozen=True)
class RunView:
    """A run's row, and its tasks as they are now; those of an ended run as they were at its end. Of
    many scores, an ended run's tasks have those that it shows; `read_all` reads the others.
    """

    row: Row[Any]
    tasks: Sequence[dict[str, Any]]
    labels: Mapping[str, str]
    whole: bool = True  # False in lists, which leave out what stands in files

    @cached_property
    def common(self) -> Mapping[str, Any]:
        """The answer's fields that every run has."""
        return _build_common_fields(self.row, self.tasks)

    def request(self, kept: type[_Kept]) -> _Kept:
        """The stored request, as the model `kept`."""
        return kept.model_validate_json(self.row.request)


def is_over(run: Run) -> bool:
    return run.status in ENDED


@dataclass(frozen=True)
class RunKind(Generic[_Answer]):
    """A kind of run. Its ids begin with `prefix` and `_`. `answer` builds a run's answer; `Prefer:
    wait` waits until `enough` is true. `narrow` leaves only these metrics in an answer; None: no
    request may name some.
    """

    name: str  # in the database
    prefix: str
    noun: str
    place: str  # the path of the collection
    out: type[_Answer]
    answer: Callable[[ServiceParts, RunView], _Answer]
    enough: Callable[[_Answer], bool] = is_over
    narrow: Callable[[_Answer, Container[str]], _Answer] | None = None

    def new_id(self) -> str:
        return f"{self.prefix}_{secrets.token_urlsafe(18)}"

    def missing(self, identity: str) -> NotFound:
        return NotFound(f"no {self.noun} {identity!r:.60}", name=identity)

    def look(
        self, parts: ServiceParts, identity: str, metrics: Container[str] | None = None
    ) -> tuple[_Answer, int]:
        """The run's answer, narrowed to `metrics` if some are named, and its version."""
        with parts.records.reading() as connection:
            looked = load_run(connection, identity, self)
        return self.build_answer(parts, looked, metrics), looked.row.version

    def build_answer(
        self, parts: ServiceParts, looked: RunView, metrics: Container[str] | None
    ) -> _Answer:
        answer = self.answer(parts, looked)
        if metrics is None or self.narrow is None:
            return answer
        return self.narrow(answer, metrics)


AnyRunKind = RunKind[Any]


@dataclass(frozen=True)
class NewRun:
    """A run to be inserted; `request` is stored with it."""

    id: str
    kind: str
    request: Mapping[str, Any]  # of JSON
    dataset: PinnedSplit
    plan: Plan
    warnings: Sequence[Mapping[str, Any]]
    deadline: float  # seconds from now
    checkpoint: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    others: Collection[str] = ()  # ids of the runs that it names
    columns: str | None = None  # the digest of those that were brought
    sizes: TaskSizes | None = None  # by which its tasks are priced; else by the split's

    @property
    def tasks(self) -> list[Task]:
        """All its tasks, with their prices."""
        sizes = self.sizes or self.dataset.sizes
        return prices.price_tasks(self.plan.everything(), sizes)


@contextmanager
def begin_insertion(parts: ServiceParts) -> Iterator[Connection]:
    """A transaction in which to insert runs; afterwards their tasks are queued."""
    with parts.records.transaction() as connection:
        yield connection
    parts.queue.flush(parts.records)


def insert_run(connection: Connection, records: Records, run: NewRun, caller: str = LOCAL) -> None:
    """Insert a run; its tasks get their turns among those of this caller."""
    now = time.time()
    deadline = now + run.deadline
    cached = intake.add_tasks(records, connection, run.tasks, deadline, caller)
    hidden = _find_hidden(connection, {key for key, is_done in cached.items() if is_done})
    connection.execute(
        runs.insert().values(
            id=run.id,
            team=tenancy.find_owner(connection),
            kind=run.kind,
            request=json.dumps(run.request),
            dataset_name=run.dataset.name,
            dataset_version=run.dataset.version,
            dataset_digest=run.dataset.digest,
            dataset_captions=run.dataset.captions,
            split=run.dataset.split,
            checkpoint=run.checkpoint,
            status="queued",
            version=1,
            warnings=json.dumps(list(run.warnings)),
            deadline=deadline,
            created_at=now,
            caller=caller,
        )
    )
    for position, (name, task) in enumerate(run.plan.named.items()):
        connection.execute(
            run_tasks.insert().values(
                run_id=run.id,
                position=position,
                name=name,
                task_key=task.key,
                cached=cached[task.key] and task.key not in hidden,
                asked_by=tenancy.find_owner(connection),
            )
        )
    named = {*run.others, run.checkpoint, run.columns} - {None}
    if named:
        rows = [{"run_id": run.id, "name": name} for name in named]
        connection.execute(run_names.insert(), rows)
    for name, value in run.labels.items():
        own = {"run_id": run.id, "name": name, "value": value, "created_at": now}
        connection.execute(labels.insert().values(**own))
    settle_run(connection, run.id)


def _find_hidden(connection: Connection, keys: Collection[str]) -> set[str]:
    """Those of these tasks that other teams have asked for, and this one has not: it is not told
    that they were computed before.

    A task may be of very many runs: of each, one row is read.
    """
    asked = sa.exists().where(run_tasks.c.task_key == task_rows.c.key)
    query = sa.select(task_rows.c.key).where(
        ~asked.where(run_tasks.c.asked_by == tenancy.find_owner(connection)), asked
    )
    return {
        row.key
        for batch in in_batches(keys)
        for row in connection.execute(query.where(task_rows.c.key.in_(batch)))
    }


def load_run(connection: Connection, identity: str, kind: AnyRunKind) -> RunView:
    (found,) = load_runs(connection, [find_run_row(connection, identity, kind)])
    return found


def load_runs(
    connection: Connection, rows: Sequence[Row[Any]], *, whole: bool = True
) -> list[RunView]:
    """Look at several runs at once, given as rows of `runs`; not `whole`: as lists do."""
    unfinished = [row.id for row in rows if row.snapshot is None]
    tasks = history.tasks_of(connection, unfinished) if unfinished else {}
    summaries.fill_summaries(connection, [task for found in tasks.values() for task in found])
    tasks |= {
        row.id: summaries.unpack_json(row.snapshot) for row in rows if row.snapshot is not None
    }
    marked = read_labels(connection, [row.id for row in rows])
    return [RunView(row, tasks[row.id], marked[row.id], whole) for row in rows]


def read_labels(connection: Connection, identities: Iterable[str]) -> dict[str, dict[str, str]]:
    """Read the labels of runs by id; of each, even of one without labels."""
    marked: dict[str, dict[str, str]] = {identity: {} for identity in identities}
    for these in in_batches(marked):
        for each in connection.execute(sa.select(labels).where(labels.c.run_id.in_(these))):
            marked[each.run_id][each.name] = each.value
    return marked


def load_all_scores(connection: Connection, looked: RunView) -> RunView:
    """Load all scores of the run."""
    summaries.fill_summaries(connection, looked.tasks)
    return looked


def read_state(records: Records, identity: str, kind: AnyRunKind) -> tuple[int, bool]:
    """A run's version, which no event has a greater number than, and whether it has ended."""
    _check_identity(identity, kind)
    with records.reading() as connection:
        found = connection.execute(_STATE, {"identity": identity}).first()
    if found is None:
        raise kind.missing(identity)
    return found.version, found.status in ENDED


def read_events(records: Records, identity: str, after: int) -> Sequence[summaries.StoredEvent]:
    with records.reading() as connection:
        return history.read_events_after(connection, identity, after)


def cancel_run(parts: ServiceParts, identity: str, kind: AnyRunKind) -> None:
    """Cancel a run and its tasks, except tasks that another unfinished run needs."""
    with parts.records.transaction() as connection:
        row = find_run_row(connection, identity, kind)
        if row.finished_at is None:
            task_expiry.cancel_run(connection, identity)
            if row.caller != parts.asker.caller:
                audit.note_change(connection, parts.asker, "run.canceled", identity, of=row.caller)


def match_split(dataset: PinnedSplit, table: sa.Table = runs) -> sa.ColumnElement[bool]:
    """The condition for runs, or boards, on this split of all versions with the same captions."""
    return sa.and_(
        table.c.dataset_captions == dataset.captions,
        table.c.split == dataset.split,
        table.c.dataset_name == dataset.name,
    )


def describe_split(row: Row[Any]) -> DatasetPinned:
    """The version and split that a run uses, as answers show it."""
    return DatasetPinned(
        name=row.dataset_name,
        version=f"v{row.dataset_version}",
        digest=row.dataset_digest,
        split=row.split,
    )


def is_task_done(records: Records, key: str) -> bool:
    """Tell whether a task is done."""
    with records.reading() as connection:
        return key in intake.find_done(connection, [key])


def find_result(records: Records, identity: str, name: str) -> str | None:
    """The digest of a task's result; None until it is done."""
    with records.reading() as connection:
        return connection.execute(
            sa.select(task_rows.c.result)
            .join(run_tasks, run_tasks.c.task_key == task_rows.c.key)
            .where(
                run_tasks.c.run_id == identity,
                run_tasks.c.name == name,
                task_rows.c.status == "done",
            )
        ).scalar()


def _build_common_fields(row: Row[Any], tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    now = time.time()
    return {
        "id": row.id,
        "status": row.status,
        "dataset": describe_split(row),
        "tasks": [build_task(task, now) for task in tasks],
        "warnings": [Oddity(**warning) for warning in json.loads(row.warnings)],
        "error": _error_of(tasks) if row.status == "failed" else None,
        "note": row.note,
        "created_at": moment(row.created_at),
        "finished_at": moment(row.finished_at) if row.finished_at else None,
    }


def build_task(row: Mapping[str, Any], now: float) -> answers.RunTask:
    """A task as a run shows it, from its row at that time."""
    ended = row["finished_at"] or now
    seconds = round(ended - row["started_at"], 3) if row["started_at"] else None
    return answers.RunTask(
        name=row["name"],
        kind=row["kind"],
        status=row["status"],
        progress=Progress(done=row["done"], total=row["total"]),
        attempts=row["attempt"],
        attempts_allowed=_count_allowed_attempts(row),
        retry_at=moment(row["ready_at"]) if _is_retried(row) else None,
        started_at=moment_or_none(row["started_at"]),
        seconds=seconds,
        seconds_left=_estimate_seconds_left(row, now),
        cached=row["cached"],
        error=RunProblem.model_validate_json(row["error"]) if row["error"] else None,
    )


def _count_allowed_attempts(row: Mapping[str, Any]) -> int | None:
    if row["status"] in TERMINAL or row["parts"] != "[]":
        return None
    over = row["attempt"] - (row["status"] == "running")
    return int(over + leases.MAX_FAILURES - row["failures"])


def _is_retried(row: Mapping[str, Any]) -> bool:
    """Tell whether a task waits for another attempt, after one that ended badly."""
    return row["status"] == "ready" and row["error"] is not None and row["ready_at"] is not None


def _estimate_seconds_left(row: Mapping[str, Any], now: float) -> float | None:
    if row["status"] != "running" or not row["done"] or row["started_at"] is None:
        return None
    elapsed = max(0.0, now - float(row["started_at"]))
    done, total = int(row["done"]), int(row["total"])
    return round(elapsed / done * (total - done), 1)


def _error_of(tasks: Sequence[Mapping[str, Any]]) -> RunProblem | None:
    """The first error that is not only the consequence of another one."""
    found = [
        RunProblem.model_validate_json(row["error"])
        for row in tasks
        if row["status"] == "failed" and row["error"]
    ]
    return next((error for error in found if error.code != "needs_failed"), None) or (
        found[0] if found else None
    )


def _check_identity(identity: str, kind: AnyRunKind) -> None:
    """Raise for a text that cannot be an id; databases refuse some of them (NUL)."""
    if not RUN_ID.fullmatch(identity):
        raise kind.missing(identity)


def find_run_row(connection: Connection, identity: str, kind: AnyRunKind) -> Row[Any]:
    _check_identity(identity, kind)
    row = connection.execute(ROW.where(runs.c.id == identity, runs.c.kind == kind.name)).first()
    if row is None:
        raise kind.missing(identity)
    return row


_Run = Evaluation | Learned


def explain_missing(run: _Run, what: str, *, task: str) -> str:
    """Explain why a run has no `what`, which the task of this name makes, or has none yet."""
    maker = next((each for each in run.tasks if each.name == task), None)
    if maker is None:
        return f"{run.id} has no {what}: it was not asked for"
    if not is_over(run) and maker.status not in ("failed", "unavailable"):
        return f"{run.id} has no {what} yet: its task {task} is {maker.status}"
    return f"{run.id} has no {what}: {_explain_end(run, maker)}"


def _explain_end(run: _Run, maker: answers.RunTask) -> str:
    why = "" if maker.error is None else f": {maker.error.detail}"
    match maker.status:
        case "failed":
            return f"its task {maker.name} failed{why}"
        case "unavailable":
            return f"its task {maker.name} is unavailable{why}"
        case _:
            return f"it {'was canceled' if run.status == 'canceled' else run.status} before"
