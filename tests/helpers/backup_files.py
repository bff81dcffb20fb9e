"""Backups for tests: a home with its backup, and what a record and a store hold."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from service.engine import database
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.operate.backups import creation

# What a restoration changes: wake-ups are sent anew, and when the last backup was is known.
CHANGED = {"outbox", "moments", "alembic_version"}


@dataclass(frozen=True)
class Kept:
    home: Path
    file: Path
    answers: dict[str, Any]  # by id, as the service gave them
    ended: list[str]
    waiting: str

    @classmethod
    def of(cls, home, answers, ended, waiting) -> "Kept":
        file = home.parent / "backup.tar"
        backup_of(home, file)
        return cls(home, file, answers, ended, waiting)


def backup_of(home, file, tell=creation.report_nothing, url=None, blob_url=None):
    engine = database.open_database(url or f"sqlite:///{home / 'record.sqlite'}")
    blobs = open_blobs(blob_url, home, copying=False)
    try:
        return creation.make_backup(Records(engine), blobs, file, tell)
    finally:
        engine.dispose()


def rows_of(url: str) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables but those that a restoration changes."""
    engine = database.open_database(url)
    found = sa.MetaData()
    try:
        found.reflect(engine)
        with engine.connect() as connection:
            return {
                table.name: sorted(
                    ({**row} for row in connection.execute(_in_order(table)).mappings()), key=repr
                )
                for table in found.sorted_tables
                if table.name not in CHANGED
            }
    finally:
        engine.dispose()


def _in_order(table: sa.Table) -> sa.Select[Any]:
    """Databases have columns in different orders."""
    return sa.select(*(table.c[name] for name in sorted(table.c.keys())))


def objects_of(home: Path, url: str | None = None) -> dict[str, bytes]:
    blobs = open_blobs(url, home)
    return {digest: b"".join(blobs.stream(digest)[1]) for digest in blobs.old(float("inf"))}


def sqlite_at(home: Path) -> str:
    return f"sqlite:///{home / 'record.sqlite'}"


def remade(file: Path, data: bytes) -> Path:
    with closing(file.open("wb")) as stream:
        stream.write(data)
    return file
