"""Thumbnails of datasets' pictures: made once for each picture and size, when asked for.

Those that nobody has looked at for long are forgotten, and made again when somebody does.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.datasets import Dataset, References
from service.contract.askers import LOCAL
from service.contract.errors import BlobUnreadable, NotFound, ServiceUnavailable, UnusableDataset
from service.contract.formats import thumbnails
from service.contract.formats.thumbnails import PictureDigests
from service.contract.plan import planning, prices
from service.contract.plan.tasks import RESTARTED, Task
from service.engine import intake
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.engine.tables import task_rows, thumbnail_rows
from service.stored import datasets
from service.stored.datasets import PinnedSplit

KEPT_SECONDS = 30 * 24 * 3600.0  # since somebody last looked
_NOTED_SECONDS = 24 * 3600.0  # between two notes that somebody has looked
_DEADLINE = 3600.0  # seconds
_AGAIN_SECONDS = 300.0  # after a failure
_BLOCK = planning.THUMBNAILS_IMAGES

T = TypeVar("T")


def show_pictures(parts: ServiceParts, reference: str, caller: str, *, shown: bool) -> Dataset:
    """Let the pictures of a version be looked at, or not any more."""
    found = datasets.set_pictures_shown(parts.records, reference, shown=shown)
    if shown:
        for split in found.splits:
            pinned = datasets.pin_split(parts.records, f"{found.name}@{found.version}/{split}")
            if pinned.pictures:
                _PictureDigests(parts, pinned, caller).begin()
    return found


def read_thumbnail(
    parts: ServiceParts, reference: str, image: str, size: int, caller: str = LOCAL
) -> bytes:
    """The WebP of a picture that is shown, or NotFound; ServiceUnavailable while it is made."""
    pinned, place = datasets.pin_shown_image(parts.records, parts.blobs, reference, image)
    digests = _read(parts, _PictureDigests(parts, pinned, caller), lambda path: _block(path, place))
    picture = digests[place % _BLOCK]
    if picture is None:
        raise NotFound(f"dataset {pinned} has no picture of the image {image!r:.200}")
    wanted = _ThumbnailBlock(parts, pinned, caller, place - place % _BLOCK, digests, picture)
    found = _read(parts, wanted, lambda path: thumbnails.read_thumbnail(path, picture, size))
    if isinstance(found, str):
        raise NotFound(f"the picture of {image!r:.200} in {pinned} cannot be decoded: {found}")
    return found


def may_have_picture(parts: ServiceParts, pinned: PinnedSplit, place: int) -> bool:
    """True unless it is known that an image has no picture. Nothing is begun."""
    if pinned.has_pictures or not pinned.pictures:
        return pinned.has_pictures
    with parts.records.reading() as connection:
        row = _PictureDigests(parts, pinned, LOCAL).look(connection)
    if row is None or row.status != "done":
        return True
    try:
        path = parts.blobs.path(row.result, check=False)
        return _block(path, place)[place % _BLOCK] is not None
    except (BlobUnreadable, UnusableDataset):  # it is made again where a picture is asked for
        return True


def forget_unseen_thumbnails(records: Records, before: float) -> int:
    """Forget thumbnails unseen since that time; returns the number of their tasks."""
    columns = thumbnail_rows.c
    last = sa.func.max(columns.looked_at) < before
    query = sa.select(columns.task_key).group_by(columns.task_key).having(last)
    with records.transaction() as connection:
        keys = connection.execute(query).scalars().all()
        for key in keys:
            _forget(connection, key)
    return len(keys)


@dataclass(frozen=True)
class _PictureDigests:
    """The SHA-256 of a split's pictures."""

    parts: ServiceParts
    pinned: PinnedSplit
    caller: str

    def look(self, connection: Connection) -> Row[Any] | None:
        key = self._task.key
        return connection.execute(sa.select(task_rows).where(task_rows.c.key == key)).first()

    def begin(self) -> None:
        with self.parts.records.transaction() as connection:
            _add(connection, self.parts, self._task, self.pinned, self.caller)
        self.parts.queue.flush(self.parts.records)

    @property
    def _task(self) -> Task:
        return planning.plan_picture_digests(self.pinned.digest, self.pinned.split)


@dataclass(frozen=True)
class _ThumbnailBlock:
    """Thumbnails of a block's pictures. `digests`: of all; `start`: its first image's place."""

    parts: ServiceParts
    pinned: PinnedSplit
    caller: str
    start: int
    digests: list[str | None]
    picture: str

    def look(self, connection: Connection) -> Row[Any] | None:
        columns = thumbnail_rows.c
        query = sa.select(task_rows, columns.looked_at)
        query = query.join(thumbnail_rows, columns.task_key == task_rows.c.key)
        return connection.execute(query.where(columns.picture == self.picture)).first()

    def begin(self) -> None:
        """Begin a task for those pictures of the block that no other task makes small."""
        block = {at: self.start + place for place, at in enumerate(self.digests) if at}
        columns, now = thumbnail_rows.c, time.time()
        known = sa.select(columns.picture).where(columns.picture.in_(block))
        with self.parts.records.transaction() as connection:
            for picture in connection.execute(known).scalars():
                del block[picture]
            if block:
                places = sorted(block.values())
                task = planning.plan_thumbnails(self.pinned.digest, self.pinned.split, places)
                _add(connection, self.parts, task, self.pinned, self.caller)
                rows = [{"picture": at, "task_key": task.key, "looked_at": now} for at in block]
                connection.execute(thumbnail_rows.insert(), rows)
        self.parts.queue.flush(self.parts.records)


def _block(path: Path, place: int) -> list[str | None]:
    """The digests of the block of images in which this one is."""
    start = place - place % _BLOCK
    found = list(PictureDigests(path).some(start, start + _BLOCK))
    if len(found) <= place % _BLOCK:
        raise UnusableDataset("the file of the pictures' digests is damaged")
    return found


def _read(
    parts: ServiceParts, wanted: _PictureDigests | _ThumbnailBlock, read: Callable[[Path], T]
) -> T:
    """The result of a task, which is begun where it is not there. Unavailable until it is done."""
    for _ in range(2):  # what is begun may be done at once
        with parts.records.reading() as connection:
            row = wanted.look(connection)
        if row is not None and row.status == "done":
            try:
                found = read(parts.blobs.path(row.result, check=False))
            except (BlobUnreadable, UnusableDataset):  # to be made again
                pass
            else:
                _note(parts.records, row)
                return found
        elif row is not None and not _may_begin(row):
            break
        if row is not None:
            with parts.records.transaction() as connection:
                _forget(connection, row.key)
        wanted.begin()
    raise ServiceUnavailable("the picture is made small just now; try again")


def _may_begin(row: Row[Any]) -> bool:
    """True if a task is to be begun again; Unavailable says why it has failed just now."""
    if row.status not in RESTARTED:
        return False
    if row.status != "canceled" and row.finished_at > time.time() - _AGAIN_SECONDS:
        why = json.loads(row.error)["detail"] if row.error else "it failed"
        raise ServiceUnavailable(
            f"the picture could not be made small: {why}; it is tried again later"
        )
    return True


def _note(records: Records, row: Row[Any]) -> None:
    """Note that somebody has looked at what a task has made, now and then."""
    if getattr(row, "looked_at", time.time()) < time.time() - _NOTED_SECONDS:
        same = thumbnail_rows.c.task_key == row.key
        with records.transaction() as connection:
            noted = thumbnail_rows.update().where(same).values(looked_at=time.time())
            connection.execute(noted)


def _forget(connection: Connection, key: str) -> None:
    """Let the task be begun again; nothing names its result any more."""
    connection.execute(thumbnail_rows.delete().where(thumbnail_rows.c.task_key == key))
    done = task_rows.c.key == key, task_rows.c.status == "done"
    gone = {"status": "canceled", "result": None, "summary": None, "summary_id": None}
    connection.execute(task_rows.update().where(*done).values(**gone))


def _add(
    connection: Connection, parts: ServiceParts, task: Task, pinned: PinnedSplit, caller: str
) -> None:
    planned = prices.price_tasks([task], pinned.sizes)
    intake.add_tasks(parts.records, connection, planned, time.time() + _DEADLINE, caller)


def read_references(parts: ServiceParts, reference: str, image: str) -> References:
    """Read the references of an image, by its name or id, in `name[@version]`."""
    pinned, place, is_shown = datasets.pin_image(parts.records, parts.blobs, reference, image)
    items = datasets.open_pinned_split(parts.blobs, pinned).items
    item = items[place]
    return References(
        dataset=pinned.out,
        image=item.image,
        id=item.id,
        split=pinned.split,
        references=list(item.references),
        before=items[place - 1].image if place > 0 else None,
        after=items[place + 1].image if place + 1 < len(items) else None,
        has_picture=is_shown and may_have_picture(parts, pinned, place),
    )
