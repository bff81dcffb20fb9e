"""The record: rows of truth in SQL. Redis may lose everything; what stands here has happened.

Works enter it by `intake`, are run through `leases` and come to an end there or by `endings`; what
a change means for other works is `graph`, what it means for evaluations `history`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Engine

_WRITER = 0x70726573  # PostgreSQL: the advisory lock of whoever writes


class Records:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._reader = engine.execution_options(reading=True)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One writer at a time, on either database: what a change means for others depends on
        what they are at that moment, and the transactions are short.
        """
        with self.engine.begin() as connection:
            if self.engine.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_WRITER)))
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Sees one state of the record and never waits for a writer."""
        with self._reader.begin() as connection:
            yield connection

    def add_new(self, connection: Connection, table: sa.Table, **values: Any) -> bool:
        """Inserts the row unless its key is there already; True where it was inserted."""
        insert = sqlite.insert if self.engine.dialect.name == "sqlite" else postgresql.insert
        statement = insert(table).values(**values).on_conflict_do_nothing()
        inserted = statement.returning(*table.primary_key)  # a row count is not given everywhere
        return connection.execute(inserted).first() is not None
