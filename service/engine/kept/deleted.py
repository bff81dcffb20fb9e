"""What was deleted: objects that tasks which are done no longer keep, and numbers of versions that
are not given again.
"""

import time
from collections.abc import Collection, Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.engine.records import in_batches
from service.engine.tables import datasets, deleted_objects, given_versions
from service.engine.teams import owned


def note(connection: Connection, digests: Iterable[str]) -> None:
    """Note that an upload was deleted: runs that have ended do not need it any more."""
    found = set(digests)
    forget(connection, found)
    rows = [{"digest": digest, "at": time.time()} for digest in sorted(found)]
    connection.execute(deleted_objects.insert(), rows)


def forget(connection: Connection, digests: Collection[str]) -> None:
    """Note that an upload is there again, or that its object is gone."""
    for batch in in_batches(digests):
        connection.execute(deleted_objects.delete().where(deleted_objects.c.digest.in_(batch)))


def among(connection: Connection, digests: Collection[str]) -> set[str]:
    """Which of these objects somebody has deleted."""
    query = sa.select(deleted_objects.c.digest)
    return {
        digest
        for batch in in_batches(digests)
        for digest in connection.execute(query.where(deleted_objects.c.digest.in_(batch))).scalars()
    }


def last_version(connection: Connection, name: str) -> int:
    """The highest version that a dataset has, or had; 0 where it never had one."""
    there = sa.select(sa.func.max(datasets.c.version)).where(datasets.c.name == name)
    gone = sa.select(given_versions.c.version).where(given_versions.c.name == name)
    found = [connection.execute(query).scalar() or 0 for query in (there, gone)]
    return max(found)


def give_no_more(connection: Connection, name: str, version: int) -> None:
    """Note that versions up to this one were given, before its row is deleted."""
    last = max(version, last_version(connection, name))
    connection.execute(given_versions.delete().where(given_versions.c.name == name))
    own = {"team": owned.owner(connection), "name": name, "version": last}
    connection.execute(given_versions.insert().values(**own))
