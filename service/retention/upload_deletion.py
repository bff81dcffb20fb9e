"""Deletion of uploads: by users, unless runs need them, and by expiry."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.keys import ChangeAction
from service.access import audit
from service.contract.errors import NotFound, StoreUnavailable
from service.contract.plan import planning
from service.contract.plan.tasks import Task
from service.engine import loose_tasks, tenancy
from service.engine.blobs import Blobs
from service.engine.records import Records, count_rows
from service.engine.service_parts import ServiceParts
from service.engine.tables import brought_columns, checkpoints, datasets, runs, task_rows
from service.retention.run_deletion import (
    check_not_needed,
    find_unfinished_naming,
    find_unfinished_reading,
)
from service.stored import adapters, conversions, garbage, resumable_uploads
from service.stored import datasets as stored
from service.stored.uploaded_files import read_description

_NAMED = 4  # one more than an error names


def delete_checkpoint(parts: ServiceParts, digest: str) -> None:
    """Scores of evaluations that have ended stay; Conflict while runs of it have not ended."""
    with parts.records.transaction() as connection:
        row = _row(connection, checkpoints, digest, "checkpoint")
        task = conversions.task_of(
            connection, digest, adapters.bind_base(read_description(row), parts.places)
        )
        if isinstance(task, Task) and not _have_others(connection, checkpoints, digest):
            _forget_conversion(connection, task)
        _delete(parts, connection, checkpoints, digest, "checkpoint.deleted")


def delete_columns(parts: ServiceParts, digest: str) -> None:
    """Scores of evaluations that have ended stay; Conflict while runs of them have not ended."""
    with parts.records.transaction() as connection:
        _row(connection, brought_columns, digest, "columns")
        _delete(parts, connection, brought_columns, digest, "columns.deleted")


def delete_dataset(parts: ServiceParts, reference: str) -> None:
    """Delete a version, or all of a name; Conflict while there are runs on them."""
    name, _, version = reference.partition("@")
    stored.read_dataset(parts.records, reference)  # NotFound says what there is
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
    parts: ServiceParts, connection: Connection, table: sa.Table, digest: str, action: ChangeAction
) -> None:
    needing = dict.fromkeys(find_unfinished_naming(connection, digest))
    needing |= dict.fromkeys(find_unfinished_reading(connection, [digest]))
    check_not_needed(digest, [*needing])
    connection.execute(table.delete().where(table.c.digest == digest))
    if not _have_others(connection, table, digest):
        garbage.note_deleted_objects(connection, [digest])
    audit.note_change(connection, parts.asker, action, digest)


@tenancy.for_all_teams
def _have_others(connection: Connection, table: sa.Table, digest: str) -> bool:
    """True if another team has sent the same file."""
    same = table.c.digest == digest, table.c.team != tenancy.find_owner(connection)
    return connection.execute(sa.select(table.c.digest).where(*same)).first() is not None


def _forget_conversion(connection: Connection, task: Task) -> None:
    """Clear the results of the conversion of an upload; another upload begins it again."""
    own = task_rows.c.key == task.key
    ended = {"status": "canceled", "result": None, "summary": None, "summary_id": None}
    forgotten = task_rows.update().where(own, task_rows.c.status != "failed")
    connection.execute(forgotten.values(**ended, lease_until=None))


def _check_without_runs(connection: Connection, reference: str, rows: Sequence[Row[Any]]) -> None:
    on = runs.c.dataset_name == rows[0].name, runs.c.dataset_version.in_([r.version for r in rows])
    many = count_rows(connection, runs, *on)
    latest = sa.select(runs.c.id).where(*on).order_by(runs.c.created_at.desc()).limit(_NAMED)
    check_not_needed(reference, connection.execute(latest).scalars().all(), "kept", many)
    objects = {row.digest for row in rows} | _captions_of_none_other(connection, rows)
    check_not_needed(reference, find_unfinished_reading(connection, objects))


def _captions_of_none_other(connection: Connection, rows: Sequence[Row[Any]]) -> set[str]:
    """The captions of these versions that no other version has."""
    own = {row.captions for row in rows}
    these = sa.tuple_(datasets.c.name, datasets.c.version).in_([(r.name, r.version) for r in rows])
    shared = sa.select(datasets.c.captions).where(datasets.c.captions.in_(own), ~these)
    return own - set(connection.execute(shared).scalars())


def _delete_version(parts: ServiceParts, connection: Connection, row: Row[Any]) -> None:
    garbage.retire_versions(connection, row.name, row.version)
    same = datasets.c.name == row.name, datasets.c.version == row.version
    connection.execute(datasets.delete().where(*same))
    if not _have_others(connection, datasets, row.digest):
        garbage.note_deleted_objects(connection, [row.digest, row.captions])
        splits = stored.format_dataset(row).splits
        tasks = [planning.plan_picture_digests(row.digest, split) for split in splits]
        loose_tasks.loosen_tasks(connection, [task.key for task in tasks])
    version = f"{row.name}@v{row.version}"
    audit.note_change(connection, parts.asker, "dataset.deleted", version, digest=row.digest)


_ORPHAN_SECONDS = 3600.0  # since a file without a row was written to


def delete_expired_uploads(records: Records, blobs: Blobs) -> int:
    """Delete what has expired, and files whose rows are gone; returns how many files."""
    now = time.time()
    expired = resumable_uploads.forget_expired_uploads(records, now)
    for identity, begun in expired:
        if begun is not None and blobs.staging is not None:
            with suppress(StoreUnavailable):  # `sweep_staged` finds it
                blobs.staging.forget(identity, begun)
    gone = {identity for identity, _ in expired}
    left = set(blobs.all_unended(now - _ORPHAN_SECONDS)) - gone
    if left:
        gone |= left - resumable_uploads.find_writers(records, left).keys()
    for identity in gone:
        blobs.unended(identity).unlink(missing_ok=True)
    return len(gone)


def delete_orphaned_parts(records: Records, blobs: Blobs) -> int:
    """Delete what clients sent to the store for uploads that are gone; returns how many."""
    if blobs.staging is None:
        return 0
    left = list(blobs.staging.old(time.time() - _ORPHAN_SECONDS))
    known = resumable_uploads.find_writers(records, {name for name, _ in left}) if left else {}
    orphans = [(name, begun) for name, begun in left if name not in known]
    for name, begun in orphans:
        blobs.staging.forget(name, begun)
    return len(orphans)
