"""Restores a backup into an empty home, or an empty database and store.

The whole file is checked before anything is written. Then the objects are written, and at last the
record, in one transaction: until that moment there is no record, and a restoration that was ended
in the middle is begun again by the same command.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from sqlalchemy.engine import Engine

from service.contract.errors import InvalidBackup, InvalidSetting
from service.contract.settings import Settings
from service.engine import database
from service.engine.blobs import Blobs, open_blobs
from service.engine.kept import moments
from service.engine.waiting import revived
from service.operate import home
from service.operate.backups import opening, record
from service.operate.backups.archive import Head, Object, Rows, raw
from service.operate.backups.told import Tell


@dataclass(frozen=True)
class Restored:
    head: Head
    rows: Mapping[str, int]  # by table
    objects: int
    lacking: int  # objects that were missing or damaged when the backup was made


def check(path: Path) -> Restored:
    """Read a backup to its end, and write nothing. InvalidBackup says what is wrong with it."""
    return _checked(path)[0]


def restore(path: Path, chosen: Settings, tell: Tell) -> Restored:
    """InvalidBackup, InvalidSetting: nothing was written."""
    tell("reading the backup", 0, 1)
    restored, digests = _checked(path)
    tell("reading the backup", 1, 1)
    engine = database.connect(chosen.database)
    try:
        if chosen.record_file is None:
            record.expect_empty(engine)
        with home.restored(chosen.home) as begun_before:
            blobs = open_blobs(chosen.blob_url, chosen.home, copying=False)
            _expect_no_others(blobs, digests)
            _objects(path, blobs, digests, tell)
            if chosen.record_file is not None and begun_before:
                _forget(chosen.record_file)
            _record(path, engine, restored.head, tell)
    finally:
        engine.dispose()
    return restored


def _checked(path: Path) -> tuple[Restored, set[bytes]]:
    first = next(opening.read(path))
    assert isinstance(first, Head)
    if not database.is_known(first.revision):
        raise InvalidBackup(
            f"{path}: made by Prescore {first.version:.40}, whose record (revision "
            f"{first.revision:.40}) is later than this version knows: restore it with that "
            "version, or a later one"
        )
    head, manifest, digests = opening.check(path)
    lacking = len(manifest.lacking) + len(manifest.damaged)
    return Restored(head, manifest.rows, len(digests), lacking), digests


def _expect_no_others(blobs: Blobs, digests: set[bytes]) -> None:
    """InvalidSetting if the store has other objects: of another service, whose record would miss
    them when this one deletes what it does not name.
    """
    other = next((at for at in blobs.old(float("inf")) if raw(at) not in digests), None)
    if other is not None:
        raise InvalidSetting(
            f"the object store is not empty: it has {other}, which is not in this backup. Name an "
            "empty place"
        )


def _objects(path: Path, blobs: Blobs, digests: set[bytes], tell: Tell) -> None:
    done = 0
    for found in opening.read(path):
        if isinstance(found, Object) and raw(found.digest) in digests:
            tell("objects", done, len(digests))
            _put(blobs, found)
            done += 1
    tell("objects", done, len(digests))


def _put(blobs: Blobs, found: Object) -> None:
    with blobs.upload() as upload:
        for chunk in found.content:
            upload.write(chunk)
        if upload.digest != found.digest:
            raise InvalidBackup(f"the backup was changed while it was read: {found.digest}")
        upload.commit()


def _record(path: Path, engine: Engine, head: Head, tell: Tell) -> None:
    tell("the record", 0, 1)
    with engine.begin() as connection:
        record.fill(connection, head.revision, _rows(path))
        revived.begin_again(connection, time.time() - head.made_at)
        moments.set_to(connection, moments.BACKUP, head.made_at)
    tell("the record", 1, 1)


def _rows(path: Path) -> Iterator[Rows]:
    """The parts of the record, which come before all objects."""
    members = opening.read(path)
    next(members)
    for found in takewhile(lambda each: isinstance(each, Rows), members):
        assert isinstance(found, Rows)
        yield found


def _forget(record_file: Path) -> None:
    """A record that a restoration was writing when it was ended."""
    for ending in ("", "-wal", "-shm", "-journal"):
        record_file.with_name(record_file.name + ending).unlink(missing_ok=True)
