"""What is forgotten of tasks and runs that ended long ago: attempts, which are only counted from
then on, and the events of runs.
"""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.engine.records import Records, insert
from service.engine.tables import attempts, past_attempts, runs

_AT_ONCE = 500  # rows in a transaction, during which all writers wait


def drop_attempts(connection: Connection, these: sa.ColumnElement[bool]) -> int:
    """Delete attempts; those that had ended still count. Returns how many."""
    outcomes = sa.select(attempts.c.outcome, sa.func.count().label("many"))
    ended = outcomes.where(these, attempts.c.outcome.is_not(None)).group_by(attempts.c.outcome)
    for row in connection.execute(ended).all():
        new = insert(connection, past_attempts).values(outcome=row.outcome, many=row.many)
        more = {"many": past_attempts.c.many + row.many}
        connection.execute(new.on_conflict_do_update(index_elements=["outcome"], set_=more))
    return connection.execute(attempts.delete().where(these)).rowcount


def trim_attempts(records: Records, before: float) -> int:
    """Delete the attempts that ended before that time, as many as one transaction may."""
    old = sa.select(attempts.c.id).where(attempts.c.ended_at < before).order_by(attempts.c.id)
    with records.reading() as connection:
        identities = connection.execute(old.limit(_AT_ONCE)).scalars().all()
    if not identities:
        return 0
    with records.transaction() as connection:
        return drop_attempts(connection, attempts.c.id.in_(identities))


def trim_events(records: Records, before: float) -> int:
    """Forget the events of runs that ended before that time, as many as one transaction may."""
    kept = runs.c.event_log.is_not(None)
    old = sa.select(runs.c.id).where(runs.c.finished_at < before, kept).order_by(runs.c.finished_at)
    with records.reading() as connection:
        identities = connection.execute(old.limit(_AT_ONCE)).scalars().all()
    if identities:
        with records.transaction() as connection:
            these = runs.update().where(runs.c.id.in_(identities))
            connection.execute(these.values(event_log=None))
    return len(identities)
