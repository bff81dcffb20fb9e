"""What a team has used today (in UTC), in the record: bytes that it sent, seconds that were
computed for it.
"""

import time
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.engine.records import Records, insert
from service.engine.tables import usage

Name = Literal["upload_bytes", "device_seconds"]
DAY = 24 * 3600
_KEPT_DAYS = 40


def today(now: float) -> int:
    return int(now // DAY)


def until_tomorrow(now: float) -> int:
    """Seconds until the day ends, rounded up."""
    return DAY - int(now % DAY)


def add(connection: Connection, team: str, name: Name, amount: float) -> None:
    """Note that a team has used so much more."""
    own = {"team": team, "name": name, "day": today(time.time())}
    added = insert(connection, usage).values(**own, amount=amount)
    more = {"amount": usage.c.amount + amount}
    connection.execute(added.on_conflict_do_update(index_elements=usage.primary_key, set_=more))


def used(connection: Connection, name: Name) -> float:
    """How much the connection's team has used today."""
    query = sa.select(usage.c.amount).where(usage.c.name == name, usage.c.day == today(time.time()))
    return float(connection.execute(query).scalar() or 0.0)


def trim(records: Records, now: float) -> int:
    """Forget days that are long gone; returns how many rows."""
    old = usage.delete().where(usage.c.day < today(now) - _KEPT_DAYS)
    with records.transaction() as connection:
        return connection.execute(old).rowcount
