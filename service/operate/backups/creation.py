"""Backup of the record and its objects, made while the service runs.

First the record, as it is at one moment; then the objects that it names. An object is stored before
a row names it and is never changed, so all of them are there, and later ones are not needed. An
object that no row names any longer may be deleted while the backup is made: then it is not missed.
"""

import contextlib
import errno
import fcntl
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from service.contract.errors import BlobMissing, DiskFull, InvalidSetting
from service.contract.settings import Settings
from service.engine import database, fleet_status
from service.engine.blobs import Blobs
from service.engine.blobs.folder import sync_folder
from service.engine.records import Records
from service.operate.backups import archive, record_rows
from service.operate.backups.archive import BackupHead, BackupWriter, format_digest
from service.stored import garbage

ReportProgress = Callable[[str, int, int], None]  # a step, how much of it is done, of how much


def report_nothing(step: str, done: int, total: int) -> None:
    """Ignore progress."""


@contextmanager
def show_progress() -> Iterator[ReportProgress]:
    """Bars on stderr, one for each step; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield report_nothing
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bars: dict[str, TaskID] = {}

        def tell(step: str, done: int, total: int) -> None:
            if step not in bars:
                bars[step] = progress.add_task(step)
            progress.update(bars[step], completed=done, total=total)

        yield tell


# Whatever looks like one, wherever it stands in a row: a table that names objects cannot be
# forgotten here, and an object too many does no harm.
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})(?![0-9a-f])")
_ASKED_AT_ONCE = 1000
_NO_RECORD = (
    "there is no record: expected a home in which `prescore serve` has worked (--home), or "
    "PRESCORE_DATABASE_URL"
)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class BackupReport:
    rows: Mapping[str, int]  # by table
    objects: int
    bytes: int  # of the file
    lacking: Sequence[str]  # objects that the record names still, and that could not be read
    damaged: Sequence[str]


def check_record_exists(chosen: Settings) -> None:
    """InvalidSetting where there is none; to connect to it would make an empty one."""
    if chosen.record_file is not None and not chosen.record_file.is_file():
        raise InvalidSetting(f"--home {chosen.home}: {_NO_RECORD}")


def make_backup(records: Records, blobs: Blobs, path: Path, tell: ReportProgress) -> BackupReport:
    """Write a backup, which has its name only when it is whole and on the disk.

    InvalidSetting: there is a file already, or none can be written there. DiskFull.
    """
    with _file(path) as stream:
        writer = BackupWriter(stream)
        made_at, digests = _record(records, writer, tell)
        lacking = _objects(blobs, writer, digests, tell)
        lacking = sorted(_still_named(records, lacking))
        manifest = writer.close(lacking)
        size = stream.tell()
    with contextlib.suppress(Exception):  # a record that is away now: the backup is there
        fleet_status.note_moment(records, fleet_status.LAST_BACKUP, made_at)
    return BackupReport(manifest.rows, manifest.objects, size, lacking, manifest.damaged)


@contextlib.contextmanager
def _file(path: Path) -> Iterator[IO[bytes]]:
    """A file beside `path`, which becomes `path` at the end of the block, and else is deleted."""
    if path.exists():
        raise InvalidSetting(f"{path}: there is such a file already; name another one")
    partial = path.with_name(f".{path.name}.partial")
    try:
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as stream:
            _take(stream, path)
            try:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                partial.rename(path)
                sync_folder(path.parent)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise DiskFull(
                f"{path}: no space is left for the backup ({error.strerror}); nothing of it is "
                "kept. Make room there, or name a file on another disk"
            ) from None
        if error.filename in (str(partial), partial, str(path), path):
            raise InvalidSetting(
                f"{path}: expected a file that can be written ({error.strerror})"
            ) from None
        raise


def _take(stream: IO[bytes], path: Path) -> None:
    """Lock the file; one that a killed backup has left is written over."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InvalidSetting(f"{path}: another `prescore backup` writes it now") from None
    stream.truncate(0)


def _record(
    records: Records, writer: BackupWriter, tell: ReportProgress
) -> tuple[float, list[bytes]]:
    """Write all rows; when that was, and the digests in them."""
    digests: set[bytes] = set()
    revision, _ = database.read_revisions(records.engine)
    if revision is None:
        raise InvalidSetting(_NO_RECORD)
    with database.open_snapshot(records.engine) as connection:
        made_at = time.time()
        found = record_rows.reflect_tables(connection)
        number, ours = archive.FORMAT, version("prescore")
        head = BackupHead(prescore_backup=number, version=ours, revision=revision, made_at=made_at)
        writer.head(head)
        for done, (name, table) in enumerate(found.items()):
            tell("the record", done, len(found))
            for columns, lines in record_rows.read_table_parts(connection, table):
                writer.rows(name, columns, lines)
                digests.update(bytes.fromhex(at) for line in lines for at in _DIGEST.findall(line))
    tell("the record", len(found), len(found))
    return made_at, sorted(digests)


def _objects(
    blobs: Blobs, writer: BackupWriter, digests: Sequence[bytes], tell: ReportProgress
) -> list[str]:
    """Write all objects; the digests of those that are not there."""
    lacking = []
    for done, digest in enumerate(digests):
        tell("objects", done, len(digests))
        try:
            size, chunks = blobs.stream(format_digest(digest))
        except BlobMissing:
            lacking.append(format_digest(digest))
            continue
        writer.object(format_digest(digest), size, chunks)
    tell("objects", len(digests), len(digests))
    return lacking


def _still_named(records: Records, lacking: Sequence[str]) -> Iterable[str]:
    """Yield lacking objects that the record still names: not deleted ones, nor other digests."""
    for start in range(0, len(lacking), _ASKED_AT_ONCE):
        yield from garbage.find_named_objects(records, lacking[start : start + _ASKED_AT_ONCE])
