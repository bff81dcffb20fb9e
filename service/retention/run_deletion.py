"""Deletion of runs that have ended, unless something that has not ended needs them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.access import audit
from service.contract.errors import Conflict
from service.contract.plan import tasks
from service.engine import loose_tasks, summaries, tenancy
from service.engine.service_parts import ServiceParts
from service.engine.tables import (
    events,
    idempotency,
    labels,
    run_names,
    run_tasks,
    runs,
    task_rows,
    untold,
)
from service.runs import annotations, board_entries, training_falls
from service.runs.annotations import ExpectsVersion, find_expected_row
from service.runs.run_store import AnyRunKind

_NAMED = 3  # ids in an error


def delete_run(
    parts: ServiceParts, kind: AnyRunKind, identity: str, expects: ExpectsVersion
) -> None:
    """Delete a run; Conflict where it has not ended, or where an unfinished run needs it."""
    with parts.records.transaction() as connection:
        row = find_expected_row(connection, kind, identity, expects)
        if row.finished_at is None:
            raise Conflict(
                f"{identity} is {row.status}: POST {kind.place}/{identity}/cancel stops it, and "
                "what has ended can be deleted"
            )
        annotations.check_run_labels(parts, connection, identity)
        needing = dict.fromkeys(
            [*find_unfinished_naming(connection, identity), *_reading(connection, row)]
        )
        check_not_needed(identity, [*needing])
        remove_run(connection, identity)
        told = {"dataset": f"{row.dataset_name}@v{row.dataset_version}/{row.split}"}
        audit.note_change(connection, parts.asker, "run.deleted", identity, kind=kind.name, **told)


def check_not_needed(
    what: str, needing: Sequence[str], why: str = "unfinished", many: int | None = None
) -> None:
    """Conflict, with the first runs, where any need it; `many`: how many, if not all are given."""
    if needing:
        shown, count = ", ".join(needing[:_NAMED]), many or len(needing)
        more = f" and {count - _NAMED:,} more" if count > _NAMED else ""
        told = f"{count:,} {why} {'run' if count == 1 else 'runs'}"
        raise Conflict(f"{what} is needed by {told}: {shown}{more}")


def find_unfinished_naming(connection: Connection, name: str) -> list[str]:
    """Unfinished runs that name this run or upload: as baseline, side, or what they are of."""
    query = sa.select(runs.c.id).join(run_names, run_names.c.run_id == runs.c.id)
    unfinished = run_names.c.name == name, runs.c.finished_at.is_(None)
    return list(connection.execute(query.where(*unfinished)).scalars())


def find_unfinished_reading(connection: Connection, objects: Iterable[str]) -> list[str]:
    """The unfinished runs with tasks that are still to read one of these objects."""
    wanted = set(objects)
    query = sa.select(task_rows.c.key, task_rows.c.inputs)
    unfinished = connection.execute(query.where(task_rows.c.status.in_(tasks.UNFINISHED)))
    keys = [row.key for row in unfinished if wanted & set(json.loads(row.inputs).values())]
    holding = (
        sa.select(run_tasks.c.run_id)
        .join(runs, runs.c.id == run_tasks.c.run_id)
        .where(run_tasks.c.task_key.in_(keys), runs.c.finished_at.is_(None))
        .distinct()
    )
    return list(connection.execute(holding).scalars())


def _reading(connection: Connection, row: Row[Any]) -> list[str]:
    results = [task["result"] for task in summaries.unpack_json(row.snapshot)]
    return find_unfinished_reading(connection, filter(None, results))


_OTHERS = (events, untold, labels, idempotency, run_names)  # tables with rows of a run


@tenancy.for_all_teams
def remove_run(connection: Connection, identity: str) -> None:
    """Delete a run that has ended from lists, boards, labels and events. Runs whose answers show
    that it was there get a new version.
    """
    _tell(connection, identity)
    group = training_falls.find_group(connection, identity)
    board_entries.remove_scores(connection, identity)
    own = sa.select(run_tasks.c.task_key).where(run_tasks.c.run_id == identity)
    keys = connection.execute(own).scalars().all()
    connection.execute(run_tasks.delete().where(run_tasks.c.run_id == identity))
    loose_tasks.loosen_tasks(connection, keys)
    for table in _OTHERS:
        connection.execute(table.delete().where(table.c.run_id == identity))
    connection.execute(runs.delete().where(runs.c.id == identity))
    training_falls.settle_groups(connection, identity, group)


def _tell(connection: Connection, identity: str) -> None:
    """Ended comparisons and studies of this run show it no more."""
    naming = sa.select(run_names.c.run_id).where(run_names.c.name == identity)
    shown = runs.c.kind.in_(("comparison", "study")), runs.c.id.in_(naming)
    connection.execute(runs.update().where(*shown).values(version=runs.c.version + 1))
