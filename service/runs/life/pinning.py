"""What a run names is there when the run is: looked at in the transaction that inserts it, for the
plan was made before, and anything may have been deleted or collected since.
"""

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.plan.tasks import Blob
from service.engine.blobs import Blobs
from service.engine.records import in_batches
from service.engine.tables import checkpoints, datasets, runs
from service.runs.base import NewRun
from service.stored import garbage


class Gone(Exception):
    """Something that was found is not there any more: look again."""


def check(connection: Connection, blobs: Blobs, run: NewRun) -> None:
    """Raise Gone unless all that a run names is there. From its insertion on, its tasks keep it."""
    pinned = run.dataset
    version = datasets.c.name == pinned.name, datasets.c.version == pinned.version
    there = connection.execute(sa.select(datasets.c.digest).where(*version)).scalar()
    is_there = there == pinned.digest and _has(connection, checkpoints.c.digest, run.checkpoint)
    if not is_there or _missing(connection, run.others):
        raise Gone
    objects = {str(at) for task in run.tasks for at in task.inputs.values() if isinstance(at, Blob)}
    unnamed = objects - garbage.kept_by_rows(connection, objects)
    if not all(map(blobs.has, sorted(unnamed))):
        raise Gone


def _has(connection: Connection, column: sa.Column[str], digest: str | None) -> bool:
    if digest is None:
        return True
    return connection.execute(sa.select(column).where(column == digest)).first() is not None


def _missing(connection: Connection, identities: Iterable[str]) -> set[str]:
    wanted = set(identities)
    query = sa.select(runs.c.id)
    found = (
        identity
        for batch in in_batches(wanted)
        for identity in connection.execute(query.where(runs.c.id.in_(batch))).scalars()
    )
    return wanted - set(found)
