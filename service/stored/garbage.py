"""Garbage collection: deletes objects that no row of the database names.

An object is named by an upload, by a version of a dataset, by the task whose result it is, and by
the tasks that read it; of an upload that somebody has deleted, only by tasks that have not ended.

An object is stored before a row names it. Whoever names one looks, in the transaction that names
it, whether it is still there (`service.runs.kinds`, `service.stored.uploaded_files`,
`service.stored.dataset_versions`), or stores it once more afterwards (workers); and objects are
deleted in a transaction, during which no row can be added. So nothing depends on the grace period,
which only spares uploads that are sent again.
"""

import json
import time
from collections.abc import Collection, Iterable
from itertools import islice

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.plan import tasks
from service.engine import loose_tasks, tenancy
from service.engine.blobs import Blobs
from service.engine.records import Records, in_batches
from service.engine.tables import (
    brought_columns,
    checkpoints,
    datasets,
    deleted_objects,
    given_versions,
    task_rows,
)

GRACE_SECONDS = 24 * 3600
_BATCH = 200
_DELETED_AT_ONCE = 20  # while all writers wait: a second on a slow store
_SKEW_SECONDS = 3600  # the clocks of a fleet may differ so much
_UNFINISHED = task_rows.c.status.in_(tasks.UNFINISHED)


def collect_garbage(records: Records, blobs: Blobs, grace: float = GRACE_SECONDS) -> int:
    """Delete tasks that no run needs, and old objects that no row names; the number of these."""
    began = time.time()
    loose_tasks.delete_loose_tasks(records)
    with records.reading() as connection:
        inputs = _inputs(connection, sa.true())
    gone = 0
    old = iter(blobs.old(began - grace))
    while batch := set(islice(old, _BATCH)):
        with records.reading() as connection:
            suspects = batch - find_objects_of_rows(connection, batch)
            suspects -= inputs - find_deleted_objects(connection, suspects & inputs)
        remaining = iter(sorted(suspects))
        while some := set(islice(remaining, _DELETED_AT_ONCE)):
            with records.transaction() as connection:
                unnamed = (
                    some
                    - find_objects_of_rows(connection, some)
                    - _read_now(connection, some, began)
                )
                these = [at for at in sorted(unnamed) if blobs.delete_old(at, began - grace)]
                forget_deleted_objects(connection, these)
                gone += len(these)
    return gone


def find_named_objects(records: Records, digests: Iterable[str]) -> set[str]:
    """Find those of these objects that the record names."""
    asked = set(digests)
    with records.reading() as connection:
        inputs = _inputs(connection, sa.true()) - find_deleted_objects(connection, asked)
        inputs |= _inputs(connection, _UNFINISHED)
        return find_objects_of_rows(connection, asked) | (asked & inputs)


def find_objects_of_rows(connection: Connection, digests: Iterable[str]) -> set[str]:
    """Find those of these objects that are uploads, parts of datasets, or results of tasks."""
    columns = (
        checkpoints.c.digest,
        brought_columns.c.digest,
        datasets.c.digest,
        datasets.c.captions,
        task_rows.c.result,
    )
    wanted = list(digests)
    queries = [sa.select(column).where(column.in_(wanted)) for column in columns]
    return set(connection.execute(sa.union(*queries)).scalars())


def _read_now(connection: Connection, digests: Collection[str], began: float) -> set[str]:
    """Find those of these objects that unfinished tasks will read, or, unless they were deleted,
    that tasks read which were added since the collection began.
    """
    new = _inputs(connection, task_rows.c.created_at >= began - _SKEW_SECONDS)
    return _inputs(connection, _UNFINISHED) | (new - find_deleted_objects(connection, digests))


def _inputs(connection: Connection, condition: sa.ColumnElement[bool]) -> set[str]:
    """Digests that tasks read, and also keys of tasks, which are no digests of objects."""
    query = sa.select(task_rows.c.inputs).where(condition).distinct()
    return {at for text in connection.execute(query).scalars() for at in json.loads(text).values()}


def note_deleted_objects(connection: Connection, digests: Iterable[str]) -> None:
    """Note that an upload was deleted: runs that have ended do not need it any more."""
    found = set(digests)
    forget_deleted_objects(connection, found)
    rows = [{"digest": digest, "at": time.time()} for digest in sorted(found)]
    connection.execute(deleted_objects.insert(), rows)


def forget_deleted_objects(connection: Connection, digests: Collection[str]) -> None:
    """Note that an upload is there again, or that its object is gone."""
    for batch in in_batches(digests):
        connection.execute(deleted_objects.delete().where(deleted_objects.c.digest.in_(batch)))


def find_deleted_objects(connection: Connection, digests: Collection[str]) -> set[str]:
    """Find those of these objects that somebody has deleted."""
    query = sa.select(deleted_objects.c.digest)
    return {
        digest
        for batch in in_batches(digests)
        for digest in connection.execute(query.where(deleted_objects.c.digest.in_(batch))).scalars()
    }


def find_last_version(connection: Connection, name: str) -> int:
    """The highest version that a dataset has, or had; 0 where it never had one."""
    there = sa.select(sa.func.max(datasets.c.version)).where(datasets.c.name == name)
    gone = sa.select(given_versions.c.version).where(given_versions.c.name == name)
    found = [connection.execute(query).scalar() or 0 for query in (there, gone)]
    return max(found)


def retire_versions(connection: Connection, name: str, version: int) -> None:
    """Note that versions up to this one were given, before its row is deleted."""
    last = max(version, find_last_version(connection, name))
    connection.execute(given_versions.delete().where(given_versions.c.name == name))
    own = {"team": tenancy.find_owner(connection), "name": name, "version": last}
    connection.execute(given_versions.insert().values(**own))
