"""Tenancy: a team sees its own rows. A connection of `Records.of(team)` is bound to that team; one
that is bound to none belongs to the engine (workers, janitor), which sees the rows of all teams.

A team's connection sees and changes the team's own rows, whatever a statement asks for: the
condition is added here, to each table with a column `team` that a statement names, so no query can
forget it. What teams share (tasks, objects) has no such column.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import visitors
from sqlalchemy.sql.visitors import InternalTraversal

from service.contract.askers import LOCAL

_OF_ALL = "prescore: rows of all teams"
_PARTS = (sa.Select, sa.Update, sa.Delete)
_KNOWN = 500  # statements, at most 20 kB each
_VISITED = ("select", "update", "delete")
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


class UnrestrictedStatement(Exception):
    """A statement in which no condition can be put: a defect of the program."""


def find_team(connection: Connection) -> str | None:
    """The team to which a connection is bound; None: it is the engine's."""
    team: str | None = connection.get_execution_options().get("team")
    return team


def find_owner(connection: Connection) -> str:
    """The team to which a new row belongs."""
    return find_team(connection) or LOCAL


def bind_engine(engine: Engine, team: str) -> Engine:
    """The engine, with connections that are bound to this team."""
    made = engine.execution_options(team=team)

    def restrict(
        connection: Connection, statement: Any, several: Any, values: Any, _: Any
    ) -> tuple[Any, Any, Any]:
        if not connection.info.get(_OF_ALL):
            if not isinstance(statement, sa.sql.ClauseElement) or isinstance(
                statement, sa.TextClause
            ):
                raise UnrestrictedStatement(str(statement)[:200])
            _check_owned(statement, several, values)
            statement = _restricted(statement, team)
        return statement, several, values

    sa.event.listen(made, "before_execute", restrict, retval=True)
    return made


@contextmanager
def see_all_teams(connection: Connection) -> Iterator[None]:
    """Statements of this connection see the rows of all teams, until the end of the block."""
    before = connection.info.get(_OF_ALL, False)
    connection.info[_OF_ALL] = True
    try:
        yield
    finally:
        connection.info[_OF_ALL] = before


def for_all_teams(
    function: Callable[Concatenate[Connection, _Given], _Answer],
) -> Callable[Concatenate[Connection, _Given], _Answer]:
    """The function with a connection that sees all teams: tasks are shared by teams."""

    @wraps(function)
    def widened(connection: Connection, /, *args: _Given.args, **named: _Given.kwargs) -> _Answer:
        with see_all_teams(connection):
            return function(connection, *args, **named)

    return widened


@lru_cache(maxsize=_KNOWN)
def _restricted(statement: Any, team: str) -> Any:
    """The statement with the condition of the team in each part that names a table of teams. Those
    that are executed again and again are kept; of others, a few.
    """
    tables, is_whole = _named(statement)
    own = _own(tables, team) if isinstance(statement, _PARTS) else []
    if is_whole:
        return statement.where(*own) if own else statement

    def narrow(part: Any) -> None:
        tables, _ = _named(part)
        part._where_criteria += tuple(_own(tables, team))  # noqa: SLF001  `where` makes another

    return visitors.cloned_traverse(statement, {}, dict.fromkeys(_VISITED, narrow))


def _check_owned(statement: Any, several: Any, values: Any) -> None:
    """Raise for a new row that does not say whose it is."""
    if isinstance(statement, sa.Insert) and "team" in statement.table.c:
        given = {str(getattr(of, "key", of)) for of in statement._values or ()}  # noqa: SLF001
        given |= {name for row in [*several, values] for name in row}
        given |= set(statement._select_names or ())  # noqa: SLF001
        if "team" not in given:
            raise UnrestrictedStatement(f"a row of {statement.table} without its team")


class _OfTeam(sa.ColumnElement[bool]):
    """The condition of a team on a table. SQLite is told that about half of the rows meet it: else
    it takes an index that begins with the team, and reads all the team's rows, in place of the few
    that a statement names. (Without statistics it expects ten rows of a team.)
    """

    inherit_cache = True
    _is_implicitly_boolean = True  # written as it is, with no `= 1`
    type = sa.Boolean()
    _traverse_internals = [("condition", InternalTraversal.dp_clauseelement)]  # noqa: RUF012

    def __init__(self, condition: sa.ColumnElement[bool]) -> None:
        self.condition = condition


@compiles(_OfTeam)
def _write_plain(element: _OfTeam, compiler: Any, **more: Any) -> str:
    found: str = compiler.process(element.condition, **more)
    return found


@compiles(_OfTeam, "sqlite")
def _write_likely(element: _OfTeam, compiler: Any, **more: Any) -> str:
    return f"likelihood({compiler.process(element.condition, **more)}, 0.5)"


def _own(tables: list[Any], team: str) -> list[sa.ColumnElement[bool]]:
    own = [table.c.team for table in tables if "team" in table.c]
    return [column == team if column.primary_key else _OfTeam(column == team) for column in own]


def _named(statement: Any) -> tuple[list[Any], bool]:
    """The tables and aliases of tables that a statement names, those of queries within it left out;
    and whether there are no queries within it.
    """
    if any(
        flags["isouter"] or flags["full"] for *_, flags in getattr(statement, "_setup_joins", ())
    ):
        raise UnrestrictedStatement("an outer join: its conditions belong into the join")
    found: dict[Any, None] = {}
    is_whole = True
    left = [*statement.get_children()]
    while left:
        part = left.pop()
        match part:
            case sa.SelectBase() | sa.Subquery() | sa.CTE():
                is_whole = False
                continue
            case sa.Alias():
                found[part] = None
                continue
            case sa.TableClause():
                found[part] = None
            case sa.ColumnClause() if isinstance(part.table, sa.TableClause | sa.Alias):
                found[part.table] = None
            case sa.Join() if part.isouter or part.full:
                raise UnrestrictedStatement("an outer join: its conditions belong into the join")
        left += part.get_children()
    return [*found], is_whole
