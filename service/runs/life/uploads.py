"""Deletion of checkpoints, columns and versions of datasets, unless runs need them."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.keys import ChangeAction
from service.contract.errors import NotFound
from service.contract.plan import planning
from service.contract.plan.tasks import Task
from service.engine.kept import audit, deleted, loose
from service.engine.parts import Parts
from service.engine.tables import brought_columns, checkpoints, datasets, runs, task_rows
from service.engine.teams import owned
from service.runs.life.deletion import check_free, unfinished_naming, unfinished_reading
from service.stored import datasets as stored
from service.stored import plugins
from service.stored.described import decoded

_NAMED = 4  # one more than an error names


def delete_checkpoint(parts: Parts, digest: str) -> None:
    """Scores of evaluations that have ended stay; Conflict while runs of it have not ended."""
    with parts.records.transaction() as connection:
        row = _row(connection, checkpoints, digest, "checkpoint")
        task = plugins.task_of(connection, digest, decoded(row))
        if isinstance(task, Task) and not _have_others(connection, checkpoints, digest):
            _forget_conversion(connection, task)
        _delete(parts, connection, checkpoints, digest, "checkpoint.deleted")


def delete_columns(parts: Parts, digest: str) -> None:
    """Scores of evaluations that have ended stay; Conflict while runs of them have not ended."""
    with parts.records.transaction() as connection:
        _row(connection, brought_columns, digest, "columns")
        _delete(parts, connection, brought_columns, digest, "columns.deleted")


def delete_dataset(parts: Parts, reference: str) -> None:
    """Delete a version, or all of a name; Conflict while there are runs on them."""
    name, _, version = reference.partition("@")
    stored.get(parts.records, reference)  # NotFound says what there is
    with parts.records.transaction() as connection:
        query = sa.select(datasets).where(datasets.c.name == name)
        if version:
            query = query.where(datasets.c.version == int(version.removeprefix("v")))
        rows = connection.execute(query.order_by(datasets.c.version)).all()
        if not rows:
            raise NotFound(f"no dataset {reference!r:.120}", name=name)
        _check_without_runs(connection, reference, rows)
        for row in rows:
            _delete_version(parts, connection, row)


def _row(connection: Connection, table: sa.Table, digest: str, noun: str) -> Row[Any]:
    row = connection.execute(sa.select(table).where(table.c.digest == digest)).first()
    if row is None:
        raise NotFound(f"no {noun} {digest}", name=digest)
    return row


def _delete(
    parts: Parts, connection: Connection, table: sa.Table, digest: str, action: ChangeAction
) -> None:
    needing = [*unfinished_naming(connection, digest), *unfinished_reading(connection, [digest])]
    check_free(digest, [*dict.fromkeys(needing)])
    connection.execute(table.delete().where(table.c.digest == digest))
    if not _have_others(connection, table, digest):
        deleted.note(connection, [digest])
    audit.note(connection, parts.asker, action, digest)


@owned.for_all_teams
def _have_others(connection: Connection, table: sa.Table, digest: str) -> bool:
    """Whether another team has sent the same file."""
    same = table.c.digest == digest, table.c.team != owned.owner(connection)
    return connection.execute(sa.select(table.c.digest).where(*same)).first() is not None


def _forget_conversion(connection: Connection, task: Task) -> None:
    """Of what was made of an upload, nothing is named any more; an upload begins it again."""
    own = task_rows.c.key == task.key
    ended = {"status": "canceled", "result": None, "summary": None, "summary_id": None}
    forgotten = task_rows.update().where(own, task_rows.c.status != "failed")
    connection.execute(forgotten.values(**ended, lease_until=None))


def _check_without_runs(connection: Connection, reference: str, rows: Sequence[Row[Any]]) -> None:
    on = runs.c.dataset_name == rows[0].name, runs.c.dataset_version.in_([r.version for r in rows])
    many = connection.execute(sa.select(sa.func.count()).select_from(runs).where(*on)).scalar_one()
    latest = sa.select(runs.c.id).where(*on).order_by(runs.c.created_at.desc()).limit(_NAMED)
    check_free(reference, connection.execute(latest).scalars().all(), "kept", many)
    objects = {row.digest for row in rows} | _captions_of_none_other(connection, rows)
    check_free(reference, unfinished_reading(connection, objects))


def _captions_of_none_other(connection: Connection, rows: Sequence[Row[Any]]) -> set[str]:
    """The captions of these versions that no other version has."""
    own = {row.captions for row in rows}
    these = sa.tuple_(datasets.c.name, datasets.c.version).in_([(r.name, r.version) for r in rows])
    shared = sa.select(datasets.c.captions).where(datasets.c.captions.in_(own), ~these)
    return own - set(connection.execute(shared).scalars())


def _delete_version(parts: Parts, connection: Connection, row: Row[Any]) -> None:
    deleted.give_no_more(connection, row.name, row.version)
    same = datasets.c.name == row.name, datasets.c.version == row.version
    connection.execute(datasets.delete().where(*same))
    if not _have_others(connection, datasets, row.digest):
        deleted.note(connection, [row.digest, row.captions])
        splits = stored.out(row).splits
        loose.loosen(
            connection, [planning.plan_picture_digests(row.digest, at).key for at in splits]
        )
    version = f"{row.name}@v{row.version}"
    audit.note(connection, parts.asker, "dataset.deleted", version, digest=row.digest)
