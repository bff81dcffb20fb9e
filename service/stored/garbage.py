"""Deletes objects that no row of the database names: late results, uploads that failed.

An object is stored before a row names it, so new objects are kept for a grace period; old ones are
deleted in a transaction, during which no row can be added.
"""

import json
import time
from collections.abc import Iterable
from itertools import islice

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.works.blobs import Blobs
from service.works.records import Records
from service.works.tables import brought_columns, checkpoints, datasets, work_rows

GRACE_SECONDS = 24 * 3600
_BATCH = 200
_DELETED_AT_ONCE = 20  # while all writers wait: a second on a slow store
_SKEW_SECONDS = 3600  # the clocks of a fleet may differ so much


def collect(records: Records, blobs: Blobs, grace: float = GRACE_SECONDS) -> int:
    """Delete objects that are older than `grace` and that no row names; returns how many."""
    began = time.time()
    with records.reading() as connection:
        inputs = _inputs(connection, since=0)
    deleted = 0
    old = iter(blobs.old(began - grace))
    while batch := set(islice(old, _BATCH)):
        with records.reading() as connection:
            suspects = batch - inputs - _named(connection, batch)
        remaining = iter(sorted(suspects))
        while some := set(islice(remaining, _DELETED_AT_ONCE)):
            with records.transaction() as connection:
                since = began - _SKEW_SECONDS
                unnamed = some - _named(connection, some) - _inputs(connection, since)
                deleted += sum(blobs.delete_old(digest, began - grace) for digest in unnamed)
    return deleted


def _named(connection: Connection, digests: Iterable[str]) -> set[str]:
    columns = (
        checkpoints.c.digest,
        brought_columns.c.digest,
        datasets.c.digest,
        datasets.c.captions,
        work_rows.c.result,
    )
    queries = [sa.select(column).where(column.in_(list(digests))) for column in columns]
    return set(connection.execute(sa.union(*queries)).scalars())


def _inputs(connection: Connection, since: float) -> set[str]:
    """Digests that works read, and also keys of works, which are no digests of objects."""
    query = sa.select(work_rows.c.inputs).where(work_rows.c.created_at >= since).distinct()
    return {at for text in connection.execute(query).scalars() for at in json.loads(text).values()}
