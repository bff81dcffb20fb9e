"""Deletion of runs that have ended, unless something that has not ended needs them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract.errors import Conflict
from service.engine.kept import audit, removal, summaries
from service.engine.parts import Parts
from service.engine.tables import run_names, run_tasks, runs, task_rows
from service.runs.base import AnyKind
from service.runs.life import protection
from service.runs.life.changes import Expects, row_expected

_NAMED = 3  # ids in an error
_UNFINISHED = ("waiting", "ready", "running")


def delete(parts: Parts, kind: AnyKind, identity: str, expects: Expects) -> None:
    """Delete a run; Conflict where it has not ended, or where an unfinished run needs it."""
    with parts.records.transaction() as connection:
        row = row_expected(connection, kind, identity, expects)
        if row.finished_at is None:
            raise Conflict(
                f"{identity} is {row.status}: POST {kind.place}/{identity}/cancel stops it, and "
                "what has ended can be deleted"
            )
        protection.check_had(parts, connection, identity)
        needing = dict.fromkeys(
            [*unfinished_naming(connection, identity), *_reading(connection, row)]
        )
        check_free(identity, [*needing])
        removal.remove(connection, identity)
        told = {"dataset": f"{row.dataset_name}@v{row.dataset_version}/{row.split}"}
        audit.note(connection, parts.asker, "run.deleted", identity, kind=kind.name, **told)


def check_free(
    what: str, needing: Sequence[str], why: str = "unfinished", many: int | None = None
) -> None:
    """Conflict, with the first of the runs that need something, where there are any. `many`: how
    many there are, if `needing` has some of them.
    """
    if needing:
        shown, count = ", ".join(needing[:_NAMED]), many or len(needing)
        more = f" and {count - _NAMED:,} more" if count > _NAMED else ""
        told = f"{count:,} {why} {'run' if count == 1 else 'runs'}"
        raise Conflict(f"{what} is needed by {told}: {shown}{more}")


def unfinished_naming(connection: Connection, name: str) -> list[str]:
    """The unfinished runs that name this run or upload: as a baseline, as a side of a comparison,
    as what they are of.
    """
    query = sa.select(runs.c.id).join(run_names, run_names.c.run_id == runs.c.id)
    unfinished = run_names.c.name == name, runs.c.finished_at.is_(None)
    return list(connection.execute(query.where(*unfinished)).scalars())


def unfinished_reading(connection: Connection, objects: Iterable[str]) -> list[str]:
    """The unfinished runs with tasks that are still to read one of these objects."""
    wanted = set(objects)
    query = sa.select(task_rows.c.key, task_rows.c.inputs)
    unfinished = connection.execute(query.where(task_rows.c.status.in_(_UNFINISHED)))
    keys = [row.key for row in unfinished if wanted & set(json.loads(row.inputs).values())]
    holding = (
        sa.select(run_tasks.c.run_id)
        .join(runs, runs.c.id == run_tasks.c.run_id)
        .where(run_tasks.c.task_key.in_(keys), runs.c.finished_at.is_(None))
        .distinct()
    )
    return list(connection.execute(holding).scalars())


def _reading(connection: Connection, row: Row[Any]) -> list[str]:
    results = [task["result"] for task in summaries.unpack(row.snapshot)]
    return unfinished_reading(connection, filter(None, results))
