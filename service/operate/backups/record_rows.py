"""The record as lines of JSON, and back: the same lines from SQLite and from PostgreSQL."""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.errors import InvalidBackup, InvalidSetting
from service.engine import database
from service.operate.backups.archive import BackupRows

_VERSION = "alembic_version"
_AT_ONCE = 1000  # rows read and written at once
_PART = 4 << 20  # characters of a part
_BYTES = "bytes"  # how a value that is no JSON is written: {"bytes": base64}


def reflect_tables(connection: Connection) -> dict[str, sa.Table]:
    """Read the tables by name from the database itself, whatever version it is of."""
    found = sa.MetaData()
    found.reflect(connection)
    return {table.name: table for table in found.sorted_tables if table.name != _VERSION}


def read_table_parts(
    connection: Connection, table: sa.Table
) -> Iterator[tuple[list[str], list[str]]]:
    """All rows of a table, in parts: the names of the columns, and a line for each row."""
    streaming = connection.execution_options(yield_per=_AT_ONCE)
    lines: list[str] = []
    size = 0
    for row in streaming.execute(sa.select(table)):
        lines.append(json.dumps([_written(value) for value in row]))
        size += len(lines[-1])
        if size > _PART:
            yield table.columns.keys(), lines
            lines, size = [], 0
    if lines:
        yield table.columns.keys(), lines


def _written(value: Any) -> Any:
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode()}
    return value


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return base64.b64decode(value[_BYTES], validate=True)
    return value


def check_empty(engine: sa.Engine) -> None:
    """InvalidSetting if the database has rows, or tables of another program."""
    with engine.execution_options(reading=True).connect() as connection:
        there = sa.inspect(connection).get_table_names()
        if there and _VERSION not in there:
            raise InvalidSetting(
                f"the database has tables of another program ({there[0]:.60}): name an empty one"
            )
        for name, table in reflect_tables(connection).items():
            if connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first():
                raise InvalidSetting(
                    f"the database is not empty (there are rows in {name}): a backup is restored "
                    "into an empty one"
                )


def fill_tables(connection: Connection, revision: str, found: Iterable[BackupRows]) -> None:
    """Make the tables of that revision anew, fill them, and migrate them to this version's."""
    old = sa.MetaData()
    old.reflect(connection)
    old.drop_all(connection)
    database.upgrade_tables(connection, revision)
    known = reflect_tables(connection)
    for rows in found:
        if rows.table not in known:
            raise InvalidBackup(f"the backup has a table {rows.table} that is not known")
        _insert(connection, known[rows.table], rows)
    if connection.dialect.name == "postgresql":
        for table in known.values():
            _go_on_counting(connection, table)
    database.upgrade_tables(connection, "head")


def _insert(connection: Connection, table: sa.Table, found: BackupRows) -> None:
    values = [_named(found.columns, row) for row in found.rows]
    for start in range(0, len(values), _AT_ONCE):
        connection.execute(table.insert(), values[start : start + _AT_ONCE])


def _named(columns: Sequence[str], row: Sequence[Any]) -> Mapping[str, Any]:
    return {name: _read(value) for name, value in zip(columns, row, strict=True)}


def _go_on_counting(connection: Connection, table: sa.Table) -> None:
    """Let PostgreSQL give new rows numbers that are free; SQLite does so by itself."""
    for column in table.primary_key:
        place = sa.func.pg_get_serial_sequence(table.name, column.name)
        sequence = connection.execute(sa.select(place)).scalar()
        last = connection.execute(sa.select(sa.func.max(column))).scalar() if sequence else None
        if last is not None:
            connection.execute(sa.select(sa.func.setval(sequence, last)))
