"""Stored datasets: immutable versions of a name; equal bytes make no new version."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from service.contract.api.data import DatasetOut, FeaturesOut, SplitOut
from service.contract.api.requests import CaptionIn
from service.contract.api.runs import DatasetPinned
from service.contract.api.texts import rfc3339
from service.contract.errors import InvalidRequest, NotFound
from service.contract.formats import outputs
from service.stored import judges, splits
from service.stored.splits import References, Split
from service.works.blobs import Blobs, place
from service.works.records import Records
from service.works.tables import datasets

if TYPE_CHECKING:
    from concurrent.futures import Future

_USUAL_SPLIT = "test"


@dataclass(frozen=True)
class Pinned:
    """One split of one version of a dataset."""

    name: str
    version: int
    digest: str
    split: str
    splits: tuple[str, ...]  # all that the version has
    images: int
    features: dict[str, Any] | None

    def __str__(self) -> str:
        return f"{self.name}@v{self.version}/{self.split}"

    @property
    def out(self) -> DatasetPinned:
        """The split as answers show it."""
        return DatasetPinned(
            name=self.name, version=f"v{self.version}", digest=self.digest, split=self.split
        )


def add(records: Records, name: str, digest: str, facts: dict[str, Any]) -> tuple[DatasetOut, bool]:
    """Add a version with these bytes, or find it; returns it, and whether it is new."""
    kept = {part: json.dumps(facts[part]) for part in ("splits", "features")}
    this = sa.and_(datasets.c.name == name, datasets.c.digest == digest)
    last = sa.select(sa.func.coalesce(sa.func.max(datasets.c.version), 0))
    with records.transaction() as connection:
        found = connection.execute(sa.select(datasets).where(this)).first()
        is_new = found is None
        if is_new:
            before = connection.execute(last.where(datasets.c.name == name)).scalar_one()
            row = {"name": name, "version": before + 1, "digest": digest, "created_at": time.time()}
            connection.execute(datasets.insert().values(**row, **kept))
            found = connection.execute(sa.select(datasets).where(this)).one()
    return _out(found), is_new


def get(records: Records, reference: str) -> DatasetOut:
    """A dataset by `name` (its latest version) or `name@v3`."""
    name, _, version = reference.partition("@")
    return _out(_row(records, name, version))


def page(
    records: Records, limit: int, after: tuple[str, int] | None = None
) -> tuple[list[DatasetOut], bool]:
    """Versions of datasets by name, the latest of a name first, `after` this name and version; and
    whether there are more.
    """
    name, version = datasets.c.name, datasets.c.version
    query = sa.select(datasets).order_by(name, version.desc()).limit(limit + 1)
    if after is not None:
        query = query.where(sa.or_(name > after[0], sa.and_(name == after[0], version < after[1])))
    with records.reading() as connection:
        found = connection.execute(query).all()
    return [_out(row) for row in found[:limit]], len(found) > limit


def pin(records: Records, reference: str) -> Pinned:
    """Find the version and the split of `name[@version]/split`; NotFound where one is missing."""
    whole, _, split = reference.partition("/")
    name, _, version = whole.partition("@")
    row = _row(records, name, version)
    splits = json.loads(row.splits)
    if split not in splits:
        raise NotFound(
            f"dataset {name}@v{row.version} has no split {split!r:.100}; "
            f"it has {', '.join(sorted(splits))}"
        )
    features = json.loads(row.features) if row.features else None
    images = splits[split]["images"]
    return Pinned(name, row.version, row.digest, split, tuple(splits), images, features)


def pin_asked(records: Records, name: str, split: str | None) -> Pinned:
    """Find a split; with None the only one, or `test`."""
    if split is not None:
        return pin(records, f"{name}/{split}")
    splits = sorted(get(records, name).splits)
    usual = splits[0] if len(splits) == 1 else _USUAL_SPLIT
    if usual not in splits:
        raise InvalidRequest(
            f"dataset {name} has the splits {', '.join(splits)}",
            [("/query/split", "expected one of them")],
        )
    return pin(records, f"{name}/{usual}")


def keep_images(blobs: Blobs, path: Path, digest: str) -> None:
    """Keep the file of a dataset's images, from which its splits are read."""
    blobs.derived.keep(path, _images_of(digest))


def split_of(blobs: Blobs, pinned: Pinned) -> Split:
    """A split's images, read by place and name. Unavailable while they are prepared, which is only
    the case for what was stored by an earlier version or by another machine.
    """

    def make(images: Path) -> "Future[Any]":
        bundle = blobs.path(pinned.digest, check=False)
        ask = judges.of_this_process().ask
        return ask("images", lambda: False, path=str(bundle), images=str(images))

    return splits.open_split(blobs.derived.get(_images_of(pinned.digest), make), pinned.split)


def _images_of(digest: str) -> str:
    return f"{place(digest)}.images{splits.FORMAT}"


def store_captions(
    blobs: Blobs,
    given: Sequence[CaptionIn],
    pinned: Pinned,
    *,
    subset: bool,
    field: str = "/captions",
) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """Store captions as a blob of [place, caption] pairs in the split's order.

    Returns its digest and warnings. InvalidRequest where the captions do not fit the split, with
    pointers into `field` of the request.
    """
    split = split_of(blobs, pinned)
    references = References(split.items)
    pairs = [(each.image, each.caption) for each in given]
    with split.places() as places:
        found = outputs.arrange(pairs, places, references, str(pinned), subset=subset)
    if found.problems:
        problems = [(f"{field}{pointer}", detail) for pointer, detail in found.problems]
        raise InvalidRequest(f"captions do not fit {pinned}: {problems[0][1]}", problems)
    return blobs.put(json.dumps(found.pairs).encode()), found.warnings


def _row(records: Records, name: str, version: str) -> Any:
    if "\0" in name:  # PostgreSQL refuses a NUL even in a comparison
        raise NotFound(f"no dataset {name!r:.120}")
    query = sa.select(datasets).where(datasets.c.name == name)
    if version:
        if not re.fullmatch(r"v[1-9][0-9]{0,8}", version):
            raise NotFound(f"expected a version like v1, found {version!r:.40}")
        query = query.where(datasets.c.version == int(version[1:]))
    with records.reading() as connection:
        found = connection.execute(query.order_by(datasets.c.version.desc()).limit(1)).first()
    if found is None:
        wanted = f"{name}@{version}" if version else name
        raise NotFound(f"no dataset {wanted!r:.120}: add it with PUT /v1/datasets/{{name}}")
    return found


def _out(row: Any) -> DatasetOut:
    features = json.loads(row.features) if row.features else None
    return DatasetOut(
        name=row.name,
        version=f"v{row.version}",
        digest=row.digest,
        splits={name: SplitOut(**counts) for name, counts in json.loads(row.splits).items()},
        features=FeaturesOut(**features) if features else None,
        created_at=rfc3339(row.created_at),
    )
