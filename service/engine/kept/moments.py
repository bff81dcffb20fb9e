"""When something happened last that an operator asks for: a round of the janitor, a backup."""

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.engine.records import Records
from service.engine.tables import moment_rows

BACKUP, JANITOR = "backup", "janitor"


def note(records: Records, name: str, at: float) -> None:
    with records.transaction() as connection:
        set_to(connection, name, at)


def set_to(connection: Connection, name: str, at: float) -> None:
    own = moment_rows.c.name == name
    if not connection.execute(moment_rows.update().where(own).values(at=at)).rowcount:
        connection.execute(moment_rows.insert().values(name=name, at=at))


def all_of(connection: Connection) -> Mapping[str, float]:
    """Seconds since 1970, by name."""
    return {row.name: row.at for row in connection.execute(sa.select(moment_rows))}
