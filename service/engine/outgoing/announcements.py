"""Ended runs of which webhooks are to be told: noted where they end, read by who tells."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.engine.tables import announcements, runs, webhooks


def note(connection: Connection, identity: str, at: float) -> None:
    """Note that a run has ended, in the transaction that ends it, if its team has webhooks."""
    team = runs.c.team
    has_webhooks = sa.exists().where(webhooks.c.team == team, webhooks.c.disabled_because.is_(None))
    ended = sa.select(runs.c.id, team, sa.literal(at)).where(runs.c.id == identity, has_webhooks)
    connection.execute(announcements.insert().from_select(["run_id", "team", "at"], ended))


def noted(connection: Connection, most: int) -> list[Row[Any]]:
    """The first ones: run, team, when it ended."""
    query = sa.select(announcements).order_by(announcements.c.at, announcements.c.run_id)
    return list(connection.execute(query.limit(most)).all())


def take(connection: Connection, identity: str) -> bool:
    """Forget one, since it is told now; False if another process has told it."""
    gone = announcements.delete().where(announcements.c.run_id == identity)
    return connection.execute(gone).rowcount == 1
