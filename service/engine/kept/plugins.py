"""Which plug-ins of captioners the workers have: told by each worker when it starts."""

import time
from collections.abc import Iterable, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.formats.plugins import InstalledPlugin
from service.engine.records import Records
from service.engine.tables import plugins


def tell(records: Records, installed: Iterable[InstalledPlugin]) -> None:
    """Note the plug-ins of a worker in place of what others have told: all workers of a service are
    to have the same.
    """
    with records.transaction() as connection:
        connection.execute(plugins.delete())
        for each in installed:
            row = {**each.asdict(), "told_at": time.time()}
            connection.execute(plugins.insert().values(row))


def told(connection: Connection) -> Mapping[str, InstalledPlugin]:
    """By name."""
    rows = connection.execute(sa.select(plugins).order_by(plugins.c.name)).all()
    return {row.name: InstalledPlugin(row.name, row.package, row.version) for row in rows}
