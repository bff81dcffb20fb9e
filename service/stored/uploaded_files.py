"""Uploaded files, described by what a judge found in them."""

import json
import time
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from service.contract.errors import ServiceUnavailable
from service.engine import tenancy
from service.engine.blobs import Blobs
from service.engine.records import Records
from service.stored import garbage


@dataclass(frozen=True)
class UploadedFile:
    digest: str
    bytes: int
    description: dict[str, Any]
    created_at: float


def add_file(
    records: Records,
    table: sa.Table,
    digest: str,
    size: int,
    description: dict[str, Any],
    blobs: Blobs | None = None,
) -> None:
    """Name an object in `blobs`; ServiceUnavailable if it was collected meanwhile."""
    with records.transaction() as connection:
        if blobs is not None and not blobs.has(digest):
            raise ServiceUnavailable("the file was removed while it was stored; send it again")
        garbage.forget_deleted_objects(connection, [digest])
        records.add_new(
            connection,
            table,
            team=tenancy.find_owner(connection),
            digest=digest,
            bytes=size,
            description=json.dumps(description),
            created_at=time.time(),
        )


def find_file(records: Records, table: sa.Table, digest: str) -> UploadedFile | None:
    rows = records.read(sa.select(table).where(table.c.digest == digest))
    if not rows:
        return None
    return UploadedFile(digest, rows[0].bytes, read_description(rows[0]), rows[0].created_at)


def read_description(row: Row[Any]) -> dict[str, Any]:
    """The facts that a judge has found in a file."""
    return dict(json.loads(row.description))


def has_file(records: Records, blobs: Blobs, table: sa.Table, digest: str) -> bool:
    return find_file(records, table, digest) is not None and blobs.has(digest)
