"""Labels and notes of runs, changed after the run was submitted, whether it has ended or not."""

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract import limits
from service.contract.api.changes import EvaluationChange, RunChange
from service.contract.errors import InvalidRequest, PreconditionFailed
from service.engine import history
from service.engine.kept import audit
from service.engine.parts import Parts
from service.engine.tables import labels, runs
from service.runs import base
from service.runs.base import AnyKind
from service.runs.life import protection

Expects = Callable[[int], bool]  # whether a version of the run is one that the caller knows


def change(parts: Parts, kind: AnyKind, identity: str, wanted: RunChange, expects: Expects) -> None:
    """Change a run, which gets a new version unless all is as it was."""
    with parts.records.transaction() as connection:
        row = row_expected(connection, kind, identity, expects)
        done: dict[str, Any] = {}
        if isinstance(wanted, EvaluationChange):
            protection.check_changed(parts, wanted.labels)
            protection.check_given(parts, wanted.labels)
            if wanted.labels:
                protection.check_had(parts, connection, identity, *wanted.labels)
            done |= _change_labels(connection, row, wanted.labels)
        if "note" in wanted.model_fields_set and wanted.note != row.note:
            done["note"] = wanted.note
            own = runs.update().where(runs.c.id == identity)
            connection.execute(own.values(note=wanted.note))
        if done:
            history.add_version(connection, identity)
            audit.note(connection, parts.asker, "run.changed", identity, **done)


def row_expected(
    connection: Connection, kind: AnyKind, identity: str, expects: Expects
) -> Row[Any]:
    """A run's row; PreconditionFailed if its version is not one that the caller knows."""
    row = base.row_of(connection, identity, kind)
    if not expects(row.version):
        raise PreconditionFailed(
            f"{identity} has changed since the ETag in If-Match: get it again, and look whether "
            "you still want this",
            pointer="/header/If-Match",
        )
    return row


def _change_labels(
    connection: Connection, row: Row[Any], wanted: Mapping[str, str | None]
) -> dict[str, Any]:
    """Set and remove labels of a run; returns how those that change were before, and are."""
    own = sa.select(labels.c.name, labels.c.value).where(labels.c.run_id == row.id)
    before: dict[str, str] = {each.name: each.value for each in connection.execute(own)}
    changed = {name: value for name, value in wanted.items() if before.get(name) != value}
    kept = [name for name in before if name not in changed]
    given = {name: value for name, value in changed.items() if value is not None}
    if len(kept) + len(given) > limits.LABELS:
        raise InvalidRequest(
            f"a run has at most {limits.LABELS} labels, with these it would have "
            f"{len(kept) + len(given)}",
            [("/labels", "expected fewer, or some that are removed")],
        )
    if not changed:
        return {}
    gone = labels.c.run_id == row.id, labels.c.name.in_(changed)
    connection.execute(labels.delete().where(*gone))
    if given:
        shared = {"run_id": row.id, "created_at": row.created_at}
        rows = [{"name": name, "value": value, **shared} for name, value in given.items()]
        connection.execute(labels.insert(), rows)
    return {"labels": changed, "before": {name: before.get(name) for name in changed}}
