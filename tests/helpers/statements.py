"""What a request asks of the record: its statements, how much work they are, and by which indexes.

Work is counted on SQLite, in instructions of its machine: the same number on every computer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

STEP = 10  # instructions between two calls


@dataclass
class Statement:
    text: str
    plan: tuple[str, ...]
    steps: int = 0


@contextmanager
def watched(engine: sa.Engine) -> Iterator[list[Statement]]:
    """The statements that connections of this engine execute inside."""
    found: list[Statement] = []
    last: dict[int, Statement] = {}
    seen: list[Any] = []

    def before(_: Any, cursor: Any, text: str, values: Any, __: Any, many: bool) -> None:
        connection = cursor.connection
        connection.set_progress_handler(None, 0)
        statement = Statement(text, () if many else _plan(connection, text, values))
        found.append(statement)
        last[id(connection)] = statement
        seen.append(connection)
        connection.set_progress_handler(lambda: _count(last[id(connection)]), STEP)

    sa.event.listen(engine, "before_cursor_execute", before)
    try:
        yield found
    finally:
        sa.event.remove(engine, "before_cursor_execute", before)
        for connection in seen:
            connection.set_progress_handler(None, 0)


def _count(statement: Statement) -> int:
    statement.steps += STEP
    return 0  # go on


def _plan(connection: Any, text: str, values: Any) -> tuple[str, ...]:
    if text.split(maxsplit=1)[0] not in ("SELECT", "UPDATE", "DELETE", "WITH"):
        return ()
    return tuple(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values))
