"""Stored datasets: immutable versions of a name."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.datasets import Dataset, Features, Split
from prescore.models.runs import DatasetPinned
from service.contract import wording
from service.contract.api.field_types import moment
from service.contract.api.request_parts import CaptionInput
from service.contract.errors import Conflict, InvalidRequest, NotFound
from service.contract.formats import outputs
from service.contract.metrics import tokenizers
from service.contract.plan.planning import ReferenceSource
from service.contract.plan.prices import TaskSizes
from service.engine.blobs import Blobs, place_of_object
from service.engine.records import Records
from service.engine.tables import datasets
from service.stored import judges, splits
from service.stored.splits import ReferenceTexts, SplitFile

if TYPE_CHECKING:
    from concurrent.futures import Future

_USUAL_SPLIT = "test"


@dataclass(frozen=True)
class PinnedSplit:
    """One split of one version of a dataset. `captions`: the object from which its captions are
    read, which versions share that differ in their features alone.
    """

    name: str
    version: int
    digest: str
    captions: str
    split: str
    splits: tuple[str, ...]  # all that the version has
    images: int
    features: dict[str, Any] | None
    references: int = 0
    pictures: int = 0
    words: int | None = None  # of the references; None in those of before

    @property
    def has_pictures(self) -> bool:
        """True if the picture of each image is there."""
        return self.images == self.pictures

    def __str__(self) -> str:
        return f"{self.name}@v{self.version}/{self.split}"

    @property
    def place(self) -> str:
        """The split without its version, for sentences beside an answer that names it."""
        return f"{self.name}/{self.split}"

    def has_references_of(self, other: "PinnedSplit") -> bool:
        """True if both have the same images and references, in the same order."""
        return (self.captions, self.split) == (other.captions, other.split)

    @property
    def people(self) -> ReferenceSource:
        """Object and split of the references, for tasks that read them."""
        return ReferenceSource(self.captions, self.split)

    @property
    def sizes(self) -> TaskSizes:
        """Sizes that tasks on this split are priced by."""
        sizes = TaskSizes(self.images, self.references / max(self.images, 1))
        if self.words is None:
            return sizes
        return replace(sizes, reference_words=self.words / max(self.references, 1))

    @property
    def out(self) -> DatasetPinned:
        """The split as answers show it."""
        return DatasetPinned(
            name=self.name, version=f"v{self.version}", digest=self.digest, split=self.split
        )


def read_dataset(records: Records, reference: str) -> Dataset:
    """A dataset by `name` (its latest version) or `name@v3`."""
    return format_dataset(_row(records, reference))


def list_versions(
    records: Records, limit: int, after: tuple[str, int] | None = None
) -> tuple[list[Dataset], bool]:
    """Versions by name, the latest of each first, `after` this one; and if there are more."""
    name, version = datasets.c.name, datasets.c.version
    query = sa.select(datasets).order_by(name, version.desc()).limit(limit + 1)
    if after is not None:
        query = query.where(sa.or_(name > after[0], sa.and_(name == after[0], version < after[1])))
    found = records.read(query)
    return [format_dataset(row) for row in found[:limit]], len(found) > limit


def pin_split(records: Records, reference: str) -> PinnedSplit:
    """Find the version and the split of `name[@version]/split`; NotFound where one is missing."""
    whole, _, split = reference.partition("/")
    return _pinned(_row(records, whole), split)


def pin_with_features(
    records: Records, pinned: PinnedSplit, features: Mapping[str, Any]
) -> PinnedSplit:
    """Pin the same split of the latest version that has these features, of any size where `size` is
    None, and the same captions; the given one where no version has them.
    """
    wanted = {name: value for name, value in features.items() if value is not None}
    for found in _pin_same_captions(records, pinned):
        if found.features:
            given = {"inputs": "features", **found.features}
            if wanted.items() <= given.items():
                return found
    return pinned


def pin_with_pictures(records: Records, pinned: PinnedSplit) -> PinnedSplit:
    """The split in the latest version with all its pictures and the same captions, if any."""
    same = _pin_same_captions(records, pinned)
    return next((found for found in same if found.has_pictures), pinned)


def _pin_same_captions(records: Records, pinned: PinnedSplit) -> Iterator[PinnedSplit]:
    """The split in each version with the same captions, the latest first."""
    same = datasets.c.name == pinned.name, datasets.c.captions == pinned.captions
    query = sa.select(datasets).where(*same).order_by(datasets.c.version.desc())
    return (_pinned(row, pinned.split) for row in records.read(query))


def _pinned(row: Any, split: str) -> PinnedSplit:
    splits = json.loads(row.splits)
    if split not in splits:
        raise NotFound(
            f"dataset {row.name}@v{row.version} has no split {split!r:.100}; "
            f"it has {', '.join(sorted(splits))}{wording.suggest_names(split, splits)}",
            name=row.name,
        )
    features = json.loads(row.features) if row.features else None
    found = splits[split]
    counts = found["images"], features, found["references"], found.get("pictures", 0)
    words = found.get("words")
    version = row.name, row.version, row.digest, row.captions
    return PinnedSplit(*version, split, tuple(splits), *counts, words)


def pin_usual_split(records: Records, name: str, split: str | None) -> PinnedSplit:
    """Find a split; with None the only one, or `test`."""
    if split is not None:
        return pin_split(records, f"{name}/{split}")
    splits = sorted(read_dataset(records, name).splits)
    usual = splits[0] if len(splits) == 1 else _USUAL_SPLIT
    if usual not in splits:
        raise InvalidRequest(
            f"dataset {name} has the splits {', '.join(splits)}",
            [("/query/split", "expected one of them")],
        )
    return pin_split(records, f"{name}/{usual}")


def find_captions_file(records: Records, blobs: Blobs, reference: str) -> Path:
    """The file from which the captions of `name[@version]` are read."""
    return blobs.path(_row(records, reference).captions)


def keep_images(blobs: Blobs, path: Path, captions: str) -> None:
    """Keep the file of the images of these captions, from which splits are read."""
    blobs.derived.keep(path, _images_of(captions))


def pin_shown_image(
    records: Records, blobs: Blobs, reference: str, image: str
) -> tuple[PinnedSplit, int]:
    """The split and place of an image; NotFound also where the version's pictures are hidden."""
    row = _row(records, reference)
    if not row.shown:
        told = f"{row.name}@v{row.version}"
        raise NotFound(
            f"the pictures of {told} are not shown: `prescore datasets images {told} --show` lets "
            "everybody who reaches this service look at them"
        )
    return _pinned_image(blobs, row, image)


def pin_image(
    records: Records, blobs: Blobs, reference: str, image: str
) -> tuple[PinnedSplit, int, bool]:
    """Pin an image like `pin_shown_image`, hidden pictures too; the last value: are they shown."""
    row = _row(records, reference)
    return *_pinned_image(blobs, row, image), row.shown


def _pinned_image(blobs: Blobs, row: Any, image: str) -> tuple[PinnedSplit, int]:
    found = splits.find_image(_images(blobs, row.captions), image)
    if found is None:
        raise NotFound(f"dataset {row.name}@v{row.version} has no image {image!r:.200}")
    return _pinned(row, found[0]), found[1]


def set_pictures_shown(records: Records, reference: str, *, shown: bool) -> Dataset:
    """Note whether the pictures of a version may be looked at."""
    found = _row(records, reference)
    if shown and not any(counts.get("pictures") for counts in json.loads(found.splits).values()):
        raise Conflict(
            f"dataset {found.name}@v{found.version} has no pictures to show: "
            "`prescore datasets images NAME FOLDER` adds them",
            pointer="/pictures_shown",
        )
    same = datasets.c.name == found.name, datasets.c.version == found.version
    with records.transaction() as connection:
        told = datasets.update().where(*same).values(shown=shown).returning(datasets)
        return format_dataset(connection.execute(told).one())


def open_pinned_split(blobs: Blobs, pinned: PinnedSplit) -> SplitFile:
    """A split's images, read by place and name."""
    return splits.open_split(_images(blobs, pinned.captions), pinned.split)


def find_images_file(blobs: Blobs, pinned: PinnedSplit) -> Path:
    """The file from which the images of a split are read."""
    return _images(blobs, pinned.captions)


def find_made_images(blobs: Blobs, captions: str) -> Path | None:
    """The file of the images of these captions; None where this machine has none yet."""
    return blobs.derived.find(_images_of(captions))


def _images(blobs: Blobs, captions: str) -> Path:
    """The file of the images of these captions. Unavailable while it is prepared, which is only
    the case for what was stored by another machine.
    """

    def make(images: Path) -> "Future[Any]":
        path = blobs.path(captions, check=False)
        ask = judges.get_judges().ask
        return ask("images", lambda: False, path=str(path), images=str(images))

    return blobs.derived.get(_images_of(captions), make)


def _images_of(captions: str) -> str:
    return f"{place_of_object(captions)}.images{splits.FORMAT}"


def store_captions(
    blobs: Blobs,
    given: Sequence[CaptionInput],
    pinned: PinnedSplit,
    *,
    subset: bool | None,
    tokenizer: str,
    field: str = "/captions",
) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """Store captions as a blob of [place, caption] pairs in the split's order.

    `subset`: whether some images may lack a caption; None: they may not, and nobody can ask for it.
    Returns its digest and warnings. InvalidRequest where the captions do not fit the split, with
    pointers into `field` of the request.
    """
    split = open_pinned_split(blobs, pinned)
    references = ReferenceTexts(split.items)
    pairs = [(each.image, each.caption) for each in given]
    with split.places() as places:
        found = outputs.arrange_captions(
            *(pairs, places, references, str(pinned)),
            subset=bool(subset),
            reader=outputs.WordFinder(tokenizer, partial(tokenizers.finds_words, tokenizer)),
            advice="" if subset is None else outputs.SEND_SUBSET,
            named_by=lambda index: given[index].named_by,
            item=lambda index: f"{field}/{index}",
        )
    if found.problems:
        problems = [(f"{field}{pointer}", detail) for pointer, detail in found.problems]
        raise InvalidRequest(f"captions do not fit {pinned}: {problems[0][1]}", problems)
    return blobs.put(json.dumps(found.pairs).encode()), found.warnings


def _row(records: Records, reference: str) -> Any:
    """The row of `name` (its latest version) or `name@v3`."""
    name, _, version = reference.partition("@")
    if "\0" in name:  # PostgreSQL refuses a NUL even in a comparison
        raise NotFound(f"no dataset {name!r:.120}", name=name)
    query = sa.select(datasets).where(datasets.c.name == name)
    if version:
        if not re.fullmatch(r"v[1-9][0-9]{0,8}", version):
            raise NotFound(f"expected a version like v1, found {version!r:.40}", name=name)
        query = query.where(datasets.c.version == int(version[1:]))
    with records.reading() as connection:
        found = connection.execute(query.order_by(datasets.c.version.desc()).limit(1)).first()
        if found is None:
            raise NotFound(_missing(connection, name, version), name=name)
    return found


def _missing(connection: Connection, name: str, version: str) -> str:
    """The message for a dataset, or a version of one, that is not there."""
    columns = datasets.c
    latest = sa.select(sa.func.max(columns.version)).where(columns.name == name)
    if there := connection.execute(latest).scalar():
        return f"dataset {name} has no version {version}; the latest is v{there}"
    names = sa.select(columns.name).distinct().order_by(columns.name).limit(wording.MOST_COMPARED)
    question = wording.suggest_names(name, connection.execute(names).scalars())
    return f"no dataset {name!r:.120}: add it with PUT /v1/datasets/{{name}}{question}"


def format_dataset(row: Any) -> Dataset:
    features = json.loads(row.features) if row.features else None
    return Dataset(
        name=row.name,
        version=f"v{row.version}",
        digest=row.digest,
        content=row.content,
        captions=row.captions,
        splits={
            name: Split(**{"pictures": 0, **counts})
            for name, counts in json.loads(row.splits).items()
        },
        features=Features(**features) if features else None,
        pictures_shown=row.shown,
        created_at=moment(row.created_at),
    )
