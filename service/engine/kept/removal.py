"""Runs that are deleted: their rows go, and their tasks are looked at later."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.engine.kept import boards, loose
from service.engine.tables import events, idempotency, labels, run_names, run_tasks, runs, untold
from service.engine.teams import owned

_OTHERS = (events, untold, labels, idempotency, run_names)  # tables with rows of a run


@owned.for_all_teams
def remove(connection: Connection, identity: str) -> None:
    """Delete a run that has ended from lists, boards, labels and events. Runs whose answers show
    that it was there get a new version.
    """
    _tell(connection, identity)
    boards.leave(connection, identity)
    own = sa.select(run_tasks.c.task_key).where(run_tasks.c.run_id == identity)
    keys = connection.execute(own).scalars().all()
    connection.execute(run_tasks.delete().where(run_tasks.c.run_id == identity))
    loose.loosen(connection, keys)
    for table in _OTHERS:
        connection.execute(table.delete().where(table.c.run_id == identity))
    connection.execute(runs.delete().where(runs.c.id == identity))


def _tell(connection: Connection, identity: str) -> None:
    """Ended comparisons and studies of this run show it no more."""
    naming = sa.select(run_names.c.run_id).where(run_names.c.name == identity)
    shown = runs.c.kind.in_(("comparison", "study")), runs.c.id.in_(naming)
    connection.execute(runs.update().where(*shown).values(version=runs.c.version + 1))
