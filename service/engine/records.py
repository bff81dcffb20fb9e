"""The record: the database, which has the only true state of tasks and runs; Redis may lose data.

`intake` adds tasks, `leases` runs them, `leases` and `task_expiry` end them; `graph` changes those
that depend on a changed task, `history` the runs.
"""

import secrets
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Engine

from service.engine import database, tenancy
from service.engine.tables import deleted_objects, runs

_Value = TypeVar("_Value")
_AT_ONCE = 10_000  # values in a statement; SQLite takes 32,766 and PostgreSQL 65,535
ROOM = 65_536  # bytes that a disk must take before more is accepted
_BUSY_MILLISECONDS = 200  # SQLite: another one that writes shows as well that it can be written
_WRITER = 0x70726573  # PostgreSQL: the advisory lock of writers


class Records:
    """`team`: the one that connections are bound to (`tenancy`); None: they see all teams."""

    def __init__(self, engine: Engine, team: str | None = None) -> None:
        self.engine = engine
        self.team = team
        self._writer = engine if team is None else tenancy.bind_engine(engine, team)
        self._reader = self._writer.execution_options(reading=True)
        self._teams: dict[str, Records] = {}
        self.of_all = self if team is None else Records(engine)  # the engine's

    def of(self, team: str) -> "Records":
        """Bind the record to this team: its connections see that team's rows."""
        found = self._teams.get(team)
        if found is None:
            found = self._teams[team] = Records(self.engine, team)
        return found

    @property
    def is_file(self) -> bool:
        """True if it is a file of SQLite, read with no other program between."""
        return self.engine.dialect.name == "sqlite"

    def check(self) -> None:
        """Raise unless the record can be read and written anew, and SQLite's disk has room."""
        if self.is_file and self.engine.url.database:
            with tempfile.TemporaryFile(dir=Path(self.engine.url.database).parent) as tried:
                tried.write(bytes(ROOM))
        try:
            with database.open_new_connection(self.engine) as connection:
                if self.is_file:
                    connection.exec_driver_sql(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                else:
                    connection.execute(sa.select(runs.c.id).limit(1))
                digest = secrets.token_hex()
                connection.execute(deleted_objects.insert().values(digest=digest, at=0))
                connection.rollback()
        except sa.exc.OperationalError as error:
            if not _is_busy(error):
                raise

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction for writing. There is one writer at a time, since a change depends on the
        state of other tasks at that moment; transactions are short.
        """
        with self._writer.begin() as connection:
            if self.engine.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_WRITER)))
            yield connection

    @contextmanager
    def changing_own_row(self) -> Iterator[Connection]:
        """A transaction that changes a row which is the caller's, by a lease that it names. On
        PostgreSQL it waits for no other writer but one that changes the same row.
        """
        with self._writer.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction for reading, which sees one state and never waits for a writer."""
        with self._reader.begin() as connection:
            yield connection

    def read(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        """All rows of a query, in a transaction of its own."""
        with self.reading() as connection:
            return connection.execute(query).all()

    def add_new(self, connection: Connection, table: sa.Table, **values: Any) -> bool:
        """Insert a row unless its key exists; True if it was inserted."""
        statement = build_insert(connection, table).values(**values).on_conflict_do_nothing()
        inserted = statement.returning(*table.primary_key)  # not every driver gives a row count
        return connection.execute(inserted).first() is not None


def _is_busy(error: sa.exc.OperationalError) -> bool:
    """True if another one writes to SQLite's file."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code is not None and code & 0xFF == sqlite3.SQLITE_BUSY


def build_insert(connection: Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """An insertion of the connection's dialect, which knows what to do where a row is there."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    made: sqlite.Insert | postgresql.Insert = dialect.insert(table)
    return made


def count_rows(connection: Connection, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
    query = sa.select(sa.func.count()).select_from(table).where(*conditions)
    return int(connection.execute(query).scalar_one())


def collect_below(keys: Iterable[str], read: Callable[[list[str]], set[str]]) -> set[str]:
    """These keys and all below them. `read`: the keys right below a batch."""
    found = set(keys)
    frontier = set(found)
    while frontier:
        below = {key for batch in in_batches(frontier) for key in read(batch)}
        frontier = below - found
        found |= frontier
    return found


def in_batches(values: Iterable[_Value]) -> Iterator[list[_Value]]:
    """Yield batches of values, as many as a statement may name; none if there are no values."""
    remaining = iter(values)
    while batch := list(islice(remaining, _AT_ONCE)):
        yield batch
