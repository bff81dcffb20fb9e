"""Statements that a request executes: how much work they are, and by which indexes.

Task is counted in instructions of SQLite's machine, or in rows that PostgreSQL reads: the same
number on every computer.
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


@contextmanager
def explained(engine: sa.Engine) -> Iterator[list[Statement]]:
    """The queries that connections of this engine execute inside, on PostgreSQL; `steps` are the
    rows that their plans' nodes read.
    """
    found: list[Statement] = []

    def before(_: Any, cursor: Any, text: str, values: Any, __: Any, many: bool) -> None:
        if many or text.split(maxsplit=1)[0] not in ("SELECT", "WITH"):
            return
        with cursor.connection.cursor() as own:
            own.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", values)
            ((plan,),) = own.fetchall()
        nodes = [*_nodes(plan[0]["Plan"])]
        lines = tuple(f"{node['Node Type']} {node.get('Relation Name', '')}" for node in nodes)
        found.append(Statement(text, lines, sum(map(_rows_read, nodes))))

    sa.event.listen(engine, "before_cursor_execute", before)
    try:
        yield found
    finally:
        sa.event.remove(engine, "before_cursor_execute", before)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


def _rows_read(node: dict[str, Any]) -> int:
    rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    return round(rows * node["Actual Loops"])


def _count(statement: Statement) -> int:
    statement.steps += STEP
    return 0  # go on


def _plan(connection: Any, text: str, values: Any) -> tuple[str, ...]:
    if text.split(maxsplit=1)[0] not in ("SELECT", "UPDATE", "DELETE", "WITH"):
        return ()
    return tuple(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values))
