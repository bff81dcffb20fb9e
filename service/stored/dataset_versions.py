"""Versions of datasets: the same content is the same version, in whatever tar."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.datasets import Dataset
from service.access import audit
from service.contract.askers import EVERYBODY, Asker
from service.contract.errors import ServiceUnavailable
from service.contract.formats.bundles.files import ContentDigests
from service.engine import tenancy
from service.engine.blobs import Blobs, BlobUpload
from service.engine.records import Records
from service.engine.tables import datasets
from service.stored import garbage
from service.stored.datasets import format_dataset, keep_images


@dataclass(frozen=True)
class JudgedBundle:
    """A bundle that was uploaded and judged, and the files that judges made of it."""

    upload: BlobUpload
    facts: Mapping[str, Any]
    content: ContentDigests
    captions: Path
    images: Path


def store_version(
    records: Records, blobs: Blobs, name: str, bundle: JudgedBundle, asker: Asker = EVERYBODY
) -> tuple[Dataset, bool]:
    """Store a version, or what was lost of the one with this content; and if it is new."""
    digest, content = bundle.upload.digest, bundle.content
    with records.reading() as connection:
        same = _same(connection, name, digest, content)
    lost = {row.digest for row in same if row.digest != digest and not blobs.has(row.digest)}
    kept = next((row for row in same if row.digest not in lost), None)
    if kept is None or kept.digest == digest:
        bundle.upload.commit()
    if kept is not None:
        if not blobs.has(kept.captions):
            blobs.put_file(bundle.captions)
        return format_dataset(kept), False
    captions = content.captions
    if not blobs.has(captions):
        blobs.put_file(bundle.captions)
    keep_images(blobs, bundle.images, captions)
    size = bundle.upload.size
    return add_dataset_version(
        records, name, digest, bundle.facts, content, lost, asker, blobs, size
    )


def add_dataset_version(
    records: Records,
    name: str,
    digest: str,
    facts: Mapping[str, Any],
    content: ContentDigests,
    lost: Collection[str] = (),
    asker: Asker = EVERYBODY,
    blobs: Blobs | None = None,
    size: int = 0,
) -> tuple[Dataset, bool]:
    """Add the row of a version, unless there is one with this content that is not among `lost`;
    returns it, and whether it is new. `blobs`: where its objects are; Unavailable if they were
    collected before their names were there.
    """
    values: dict[str, Any] = {part: json.dumps(facts[part]) for part in ("splits", "features")}
    captions = content.captions
    values |= {"name": name, "digest": digest, "captions": captions, "bytes": size}
    with records.transaction() as connection:
        same = _same(connection, name, digest, content)
        kept = next((row for row in same if row.digest not in lost), None)
        if kept is not None:
            return format_dataset(kept), False
        if blobs is not None and not all(map(blobs.has, (digest, captions))):
            raise ServiceUnavailable("the dataset was removed while it was stored; send it again")
        before = garbage.find_last_version(connection, name)
        garbage.forget_deleted_objects(connection, {digest, captions})
        new = {"version": before + 1, "created_at": time.time(), **values}
        new["content"] = content.whole
        new["team"] = tenancy.find_owner(connection)
        row = connection.execute(datasets.insert().values(**new).returning(datasets)).one()
        version = f"{name}@v{row.version}"
        audit.note_change(connection, asker, "dataset.published", version, digest=digest)
    return format_dataset(row), True


def _same(
    connection: Connection, name: str, digest: str, content: ContentDigests
) -> Sequence[Row[Any]]:
    """The versions with this content: those of the same bytes first, then the latest first."""
    equal = sa.or_(datasets.c.digest == digest, datasets.c.content == content.whole)
    query = sa.select(datasets).where(datasets.c.name == name, equal)
    order = (datasets.c.digest == digest).desc(), datasets.c.version.desc()
    return connection.execute(query.order_by(*order)).all()
