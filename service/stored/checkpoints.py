"""Stored checkpoints, by the SHA-256 of their bytes; only their headers are checked."""

import json
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from service.contract.api.data import CachedOut, CheckpointOut
from service.contract.api.texts import rfc3339
from service.contract.errors import NotFound
from service.contract.formats import checkpoint_header
from service.contract.plan.works import Blob, Work
from service.works.blobs import Blobs
from service.works.records import Records
from service.works.tables import checkpoints, datasets, work_rows


def judge(path: Path) -> dict[str, Any]:
    """Check a checkpoint's header; returns the facts to store. Raises InvalidCheckpoint."""
    header = checkpoint_header.read(path)
    description = header.description
    return {
        "architecture": description.architecture,
        "config": description.config.model_dump(),
        "parameters": header.parameters,
        "vocabulary_size": len(description.vocabulary),
        "encoder": description.encoder.model_dump(),
    }


def add(records: Records, digest: str, size: int, description: dict[str, Any]) -> None:
    with records.transaction() as connection:
        records.add_new(
            connection,
            checkpoints,
            digest=digest,
            bytes=size,
            description=json.dumps(description),
            created_at=time.time(),
        )


def exists(records: Records, blobs: Blobs, digest: str) -> bool:
    with records.reading() as connection:
        query = sa.select(checkpoints.c.digest).where(checkpoints.c.digest == digest)
        return connection.execute(query).first() is not None and blobs.has(digest)


def describe(records: Records, digest: str) -> dict[str, Any]:
    with records.reading() as connection:
        query = sa.select(checkpoints.c.description).where(checkpoints.c.digest == digest)
        found = connection.execute(query).scalar()
    if found is None:
        raise NotFound(f"no checkpoint {digest}: upload it with PUT /v1/checkpoints/{digest}")
    return dict(json.loads(found))


def get(records: Records, digest: str) -> CheckpointOut:
    description = describe(records, digest)
    with records.reading() as connection:
        row = connection.execute(sa.select(checkpoints).where(checkpoints.c.digest == digest)).one()
        versions = connection.execute(sa.select(datasets)).all()
        keys = {
            Work(
                "columns",
                {"checkpoint": Blob(digest), "dataset": Blob(at.digest)},
                {"split": split},
            ).key: f"{at.name}@v{at.version}/{split}"
            for at in versions
            for split in json.loads(at.splits)
        }
        done = connection.execute(
            sa.select(work_rows.c.key).where(
                work_rows.c.key.in_(list(keys)), work_rows.c.status == "done"
            )
        ).scalars()
        cached = [CachedOut(dataset=keys[key], columns=True) for key in done]
    return CheckpointOut(
        digest=digest,
        bytes=row.bytes,
        **description,
        cached=sorted(cached, key=lambda entry: entry.dataset),
        created_at=rfc3339(row.created_at),
    )
