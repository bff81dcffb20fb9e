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

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from service.contract.errors import InvalidBackup, InvalidSetting
from service.contract.plan import tasks
from service.contract.settings import Settings
from service.engine import database, fleet_status, graph
from service.engine.blobs import Blobs, open_blobs
from service.engine.tables import attempts, outbox, runs, task_rows
from service.operate import home
from service.operate.backups import archive, record_rows
from service.operate.backups.archive import BackupHead, BackupObject, BackupRows, parse_digest
from service.operate.backups.creation import ReportProgress


@dataclass(frozen=True)
class RestorationReport:
    head: BackupHead
    rows: Mapping[str, int]  # by table
    objects: int
    lacking: int  # objects that were missing or damaged when the backup was made


def check_backup(path: Path) -> RestorationReport:
    """Read a backup to its end, and write nothing. InvalidBackup says what is wrong with it."""
    return _checked(path)[0]


def restore_backup(path: Path, chosen: Settings, tell: ReportProgress) -> RestorationReport:
    """InvalidBackup, InvalidSetting: nothing was written."""
    tell("reading the backup", 0, 1)
    restored, digests = _checked(path)
    tell("reading the backup", 1, 1)
    engine = database.open_database(chosen.database)
    try:
        if chosen.record_file is None:
            record_rows.check_empty(engine)
        with home.hold_empty_home(chosen.home) as begun_before:
            blobs = open_blobs(chosen.blob_url, chosen.home, copying=False)
            _expect_no_others(blobs, digests)
            _objects(path, blobs, digests, tell)
            if chosen.record_file is not None and begun_before:
                _forget(chosen.record_file)
            _record(path, engine, restored.head, tell)
    finally:
        engine.dispose()
    return restored


def _checked(path: Path) -> tuple[RestorationReport, set[bytes]]:
    first = next(archive.read_backup(path))
    assert isinstance(first, BackupHead)
    if not database.is_known_revision(first.revision):
        raise InvalidBackup(
            f"{path}: made by Prescore {first.version:.40}, whose record (revision "
            f"{first.revision:.40}) is later than this version knows: restore it with that "
            "version, or a later one"
        )
    head, manifest, digests = archive.check_archive(path)
    lacking = len(manifest.lacking) + len(manifest.damaged)
    return RestorationReport(head, manifest.rows, len(digests), lacking), digests


def _expect_no_others(blobs: Blobs, digests: set[bytes]) -> None:
    """InvalidSetting if the store has other objects: of another service, whose record would miss
    them when this one deletes what it does not name.
    """
    other = next((at for at in blobs.old(float("inf")) if parse_digest(at) not in digests), None)
    if other is not None:
        raise InvalidSetting(
            f"the object store is not empty: it has {other}, which is not in this backup. Name an "
            "empty place"
        )


def _objects(path: Path, blobs: Blobs, digests: set[bytes], tell: ReportProgress) -> None:
    done = 0
    for found in archive.read_backup(path):
        if isinstance(found, BackupObject) and parse_digest(found.digest) in digests:
            tell("objects", done, len(digests))
            _put(blobs, found)
            done += 1
    tell("objects", done, len(digests))


def _put(blobs: Blobs, found: BackupObject) -> None:
    with blobs.upload() as upload:
        for chunk in found.content:
            upload.write(chunk)
        if upload.digest != found.digest:
            raise InvalidBackup(f"the backup was changed while it was read: {found.digest}")
        upload.commit()


def _record(path: Path, engine: Engine, head: BackupHead, tell: ReportProgress) -> None:
    tell("the record", 0, 1)
    with engine.begin() as connection:
        record_rows.fill_tables(connection, head.revision, _rows(path))
        restart_tasks(connection, time.time() - head.made_at)
        fleet_status.set_moment(connection, fleet_status.LAST_BACKUP, head.made_at)
    tell("the record", 1, 1)


def _rows(path: Path) -> Iterator[BackupRows]:
    """The parts of the record, which come before all objects."""
    members = archive.read_backup(path)
    next(members)
    for found in takewhile(lambda each: isinstance(each, BackupRows), members):
        assert isinstance(found, BackupRows)
        yield found


def _forget(record_file: Path) -> None:
    """A record that a restoration was writing when it was ended."""
    for ending in ("", "-wal", "-shm", "-journal"):
        record_file.with_name(record_file.name + ending).unlink(missing_ok=True)


def restart_tasks(connection: Connection, elapsed: float) -> None:
    """Let what was running begin anew, and what is unfinished have as long as it had left, though
    `elapsed` seconds have passed. Wake-ups of all that is ready are sent anew.
    """
    running = task_rows.update().where(task_rows.c.status == "running")
    connection.execute(running.values(status="ready", worker=None, **graph.FRESH))
    unended = attempts.update().where(attempts.c.ended_at.is_(None))
    connection.execute(unended.values(ended_at=time.time(), outcome="restored"))
    connection.execute(outbox.delete())
    ready = sa.select(task_rows.c.key, task_rows.c.queue).where(task_rows.c.status == "ready")
    connection.execute(outbox.insert().from_select(["task_key", "queue"], ready))
    unfinished = task_rows.c.status.in_(tasks.UNFINISHED)
    later = task_rows.c.deadline + max(0.0, elapsed)
    anew = {"deadline": later, "rung_at": 0.0, "ready_at": time.time()}
    connection.execute(task_rows.update().where(unfinished).values(**anew))
    open_runs = runs.update().where(runs.c.finished_at.is_(None))
    moved = runs.c.deadline + sa.literal(max(0.0, elapsed))
    connection.execute(open_runs.values(deadline=moved))
