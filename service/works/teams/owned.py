"""Whose rows a connection may see. A connection of `Records.of(team)` is bound to that team; one
that is bound to none belongs to the engine (workers, janitor), which sees the rows of all teams.
"""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.asking import LOCAL


def team_of(connection: Connection) -> str | None:
    """The team to which a connection is bound; None: it is the engine's."""
    team: str | None = connection.get_execution_options().get("team")
    return team


def owner(connection: Connection) -> str:
    """The team to which a new row belongs."""
    return team_of(connection) or LOCAL


def own(connection: Connection, table: sa.FromClause) -> sa.ColumnElement[bool]:
    """The condition for the rows of this table that the connection may see."""
    team = team_of(connection)
    return sa.true() if team is None else table.c.team == team
