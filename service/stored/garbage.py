"""Objects that nothing names: results that came too late, uploads whose record was never written.

An object is put before a row names it, so what is young is left alone for a grace period; and what
is old is deleted in a transaction that no row can enter at the same time.
"""

import json
import time
from collections.abc import Iterable
from itertools import islice

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.works.blobs import Blobs
from service.works.records import Records
from service.works.tables import checkpoints, datasets, work_rows

GRACE_SECONDS = 24 * 3600
_BATCH = 200
_SKEW_SECONDS = 3600  # clocks of a fleet


def collect(records: Records, blobs: Blobs, grace: float = GRACE_SECONDS) -> int:
    """Deletes what has been nameless for the grace period; how many."""
    began = time.time()
    with records.reading() as connection:
        inputs = _inputs(connection, since=0)
    gone = 0
    old = iter(blobs.old(began - grace))
    while batch := set(islice(old, _BATCH)):
        with records.reading() as connection:
            suspects = batch - inputs - _named(connection, batch)
        if suspects:
            with records.transaction() as connection:
                since = began - _SKEW_SECONDS
                guilty = suspects - _named(connection, suspects) - _inputs(connection, since)
                gone += sum(blobs.delete_old(digest, began - grace) for digest in guilty)
    return gone


def _named(connection: Connection, digests: Iterable[str]) -> set[str]:
    columns = (checkpoints.c.digest, datasets.c.digest, work_rows.c.result)
    queries = [sa.select(column).where(column.in_(list(digests))) for column in columns]
    return set(connection.execute(sa.union(*queries)).scalars())


def _inputs(connection: Connection, since: float) -> set[str]:
    """Digests that works read; other works' keys among them do no harm."""
    query = sa.select(work_rows.c.inputs).where(work_rows.c.created_at >= since).distinct()
    return {at for text in connection.execute(query).scalars() for at in json.loads(text).values()}
