"""Files that users uploaded and the service describes by what a judge found in them."""

import json
import time
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from service.contract.errors import ServiceUnavailable
from service.engine.blobs import Blobs
from service.engine.kept import deleted
from service.engine.records import Records
from service.engine.teams import owned


@dataclass(frozen=True)
class Described:
    digest: str
    bytes: int
    description: dict[str, Any]
    created_at: float


def add(
    records: Records,
    table: sa.Table,
    digest: str,
    size: int,
    description: dict[str, Any],
    blobs: Blobs | None = None,
) -> None:
    """Name an object that was stored just now. `blobs`: where it is; Unavailable if it was
    collected before its name was there.
    """
    with records.transaction() as connection:
        if blobs is not None and not blobs.has(digest):
            raise ServiceUnavailable("the file was removed while it was stored; send it again")
        deleted.forget(connection, [digest])
        records.add_new(
            connection,
            table,
            team=owned.owner(connection),
            digest=digest,
            bytes=size,
            description=json.dumps(description),
            created_at=time.time(),
        )


def find(records: Records, table: sa.Table, digest: str) -> Described | None:
    with records.reading() as connection:
        row = connection.execute(sa.select(table).where(table.c.digest == digest)).first()
    if row is None:
        return None
    return Described(digest, row.bytes, decoded(row), row.created_at)


def decoded(row: Row[Any]) -> dict[str, Any]:
    """What a judge has found in a file."""
    return dict(json.loads(row.description))


def exists(records: Records, blobs: Blobs, table: sa.Table, digest: str) -> bool:
    return find(records, table, digest) is not None and blobs.has(digest)
