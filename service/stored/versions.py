"""Adds versions of datasets: the same content is the same version, whatever tar it comes in, and
the same captions are one object, whatever features come with them.
"""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract.api.data import DatasetOut
from service.contract.asking import EVERYBODY, Asker
from service.contract.errors import Unavailable
from service.contract.formats.bundles.content import Content
from service.stored.datasets import keep_images, out
from service.works.blobs import Arrived, Blobs
from service.works.kept import audit, deleted
from service.works.records import Records
from service.works.tables import datasets
from service.works.teams import owned


@dataclass(frozen=True)
class Bundle:
    """A bundle that was uploaded and judged, and the files that judges made of it."""

    upload: Arrived
    facts: Mapping[str, Any]
    content: Content
    captions: Path
    images: Path


def untold(records: Records, name: str, splits: Mapping[str, Any]) -> Sequence[str]:
    """The digests of the bundles that may have captions with these numbers of images, and of which
    nobody has told the content: they were stored before it was asked for.
    """
    query = sa.select(datasets.c.digest, datasets.c.splits)
    query = query.where(datasets.c.name == name, datasets.c.content.is_(None))
    with records.reading() as connection:
        rows = connection.execute(query).all()
    return [row.digest for row in rows if _uncounted(row.splits) == _uncounted(splits)]


def _uncounted(splits: str | Mapping[str, Any]) -> dict[str, Any]:
    """Splits without their numbers of pictures, which were not counted when there were no features
    of them.
    """
    found = json.loads(splits) if isinstance(splits, str) else splits
    return {
        name: {what: count for what, count in counts.items() if what != "pictures"}
        for name, counts in found.items()
    }


def tell(records: Records, digest: str, content: Content) -> None:
    """Note the content of a stored bundle."""
    told = {"content": content.whole, "captions_content": content.captions}
    with records.transaction() as connection:
        connection.execute(datasets.update().where(datasets.c.digest == digest).values(**told))


def store(
    records: Records, blobs: Blobs, name: str, bundle: Bundle, asker: Asker = EVERYBODY
) -> tuple[DatasetOut, bool]:
    """Store a version, or find the one with this content; returns it, and whether it is new. What
    has been lost of that one is stored again.
    """
    digest, content = bundle.upload.digest, bundle.content
    with records.reading() as connection:
        same = _same(connection, name, digest, content)
    lost = {row.digest for row in same if row.digest != digest and not blobs.has(row.digest)}
    kept = next((row for row in same if row.digest not in lost), None)
    if kept is None or kept.digest == digest:
        bundle.upload.commit()
    if kept is not None:
        if kept.captions == content.captions and not blobs.has(kept.captions):
            blobs.put_file(bundle.captions)
        return out(_with_pictures(records, kept, bundle.facts)), False
    captions = _captions(records, blobs, name, bundle)
    keep_images(blobs, bundle.images, captions)
    size = bundle.upload.size
    return add(records, name, digest, captions, bundle.facts, content, lost, asker, blobs, size)


def _with_pictures(records: Records, kept: Row[Any], facts: Mapping[str, Any]) -> Row[Any]:
    """The row of a version whose pictures are counted, if they were not when it was stored."""
    splits = json.dumps(facts["splits"])
    if kept.splits == splits:
        return kept
    same = datasets.c.name == kept.name, datasets.c.version == kept.version
    with records.transaction() as connection:
        told = datasets.update().where(*same).values(splits=splits)
        return connection.execute(told.returning(datasets)).one()


def add(
    records: Records,
    name: str,
    digest: str,
    captions: str,
    facts: Mapping[str, Any],
    content: Content,
    lost: Collection[str] = (),
    asker: Asker = EVERYBODY,
    blobs: Blobs | None = None,
    size: int = 0,
) -> tuple[DatasetOut, bool]:
    """Add the row of a version, unless there is one with this content that is not among `lost`;
    returns it, and whether it is new. `blobs`: where its objects are; Unavailable if they were
    collected before their names were there.
    """
    values: dict[str, Any] = {part: json.dumps(facts[part]) for part in ("splits", "features")}
    values |= {"name": name, "digest": digest, "captions": captions, "bytes": size}
    told = {"content": content.whole, "captions_content": content.captions}
    with records.transaction() as connection:
        same = _same(connection, name, digest, content)
        kept = next((row for row in same if row.digest not in lost), None)
        if kept is not None:
            return out(kept), False
        if blobs is not None and not all(map(blobs.has, (digest, captions))):
            raise Unavailable("the dataset was removed while it was stored; send it again")
        before = deleted.last_version(connection, name)
        deleted.forget(connection, {digest, captions})
        new = {"version": before + 1, "created_at": time.time(), **values, **told}
        new["team"] = owned.owner(connection)
        row = connection.execute(datasets.insert().values(**new).returning(datasets)).one()
        version = f"{name}@v{row.version}"
        audit.note(connection, asker, "dataset.published", version, digest=digest)
    return out(row), True


def _same(connection: Connection, name: str, digest: str, content: Content) -> Sequence[Row[Any]]:
    """The versions with this content: those of the same bytes first, then the latest first."""
    equal = sa.or_(datasets.c.digest == digest, datasets.c.content == content.whole)
    query = sa.select(datasets).where(datasets.c.name == name, equal)
    order = (datasets.c.digest == digest).desc(), datasets.c.version.desc()
    return connection.execute(query.order_by(*order)).all()


def _captions(records: Records, blobs: Blobs, name: str, bundle: Bundle) -> str:
    """The object from which these captions are read: that of another version with the same ones,
    else captions.jsonl, which is stored.
    """
    equal = datasets.c.captions_content == bundle.content.captions
    query = sa.select(datasets.c.captions).where(datasets.c.name == name, equal)
    with records.reading() as connection:
        found = connection.execute(query.order_by(datasets.c.version.desc())).scalars().all()
    shared = next((at for at in dict.fromkeys(found) if blobs.has(at)), None)
    return shared or blobs.put_file(bundle.captions)
