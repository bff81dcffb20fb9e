"""Stored checkpoints, by the SHA-256 of their bytes."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.api.data import CachedOut, CheckpointOut
from service.contract.api.texts import rfc3339
from service.contract.errors import NotFound
from service.contract.plan.works import Blob, Work
from service.stored import described
from service.stored.described import Described
from service.works.blobs import Blobs
from service.works.records import Records
from service.works.tables import checkpoints, datasets, runs, work_rows


def add(records: Records, digest: str, size: int, description: dict[str, Any]) -> None:
    described.add(records, checkpoints, digest, size, description)


def exists(records: Records, blobs: Blobs, digest: str) -> bool:
    return described.find(records, checkpoints, digest) is not None and blobs.has(digest)


def describe(records: Records, digest: str) -> dict[str, Any]:
    return _found(records, digest).description


def get(records: Records, digest: str) -> CheckpointOut:
    found = _found(records, digest)
    with records.reading() as connection:
        cached = [CachedOut(dataset=name, columns=True) for name in _scored(connection, digest)]
    return CheckpointOut(
        digest=digest,
        bytes=found.bytes,
        **found.description,
        cached=sorted(cached, key=lambda entry: entry.dataset),
        created_at=rfc3339(found.created_at),
    )


def _found(records: Records, digest: str) -> Described:
    found = described.find(records, checkpoints, digest)
    if found is None:
        raise NotFound(f"no checkpoint {digest}: upload it with PUT /v1/checkpoints/{digest}")
    return found


def _scored(connection: Connection, digest: str) -> Iterator[str]:
    """The splits on which a checkpoint has columns, looked for only where it was evaluated."""
    on = sa.select(runs.c.dataset_digest, runs.c.split).where(runs.c.checkpoint == digest)
    for bundle, split in connection.execute(on.distinct()).all():
        inputs = {"checkpoint": Blob(digest), "dataset": Blob(bundle)}
        key = Work("columns", inputs, {"split": split}).key
        status = sa.select(work_rows.c.status).where(work_rows.c.key == key)
        if connection.execute(status).scalar() == "done":
            names = sa.select(datasets.c.name, datasets.c.version)
            for at in connection.execute(names.where(datasets.c.digest == bundle)):
                yield f"{at.name}@v{at.version}/{split}"
