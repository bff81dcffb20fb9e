"""Tells runs of changes of their tasks that were noted, because too many runs share a task."""

import sqlalchemy as sa

from service.engine import early_verdicts, history
from service.engine.records import Records
from service.engine.tables import runs, untold


def tell_others(records: Records, most: int | None = None) -> int:
    """Tell runs what they have not been told, some in each transaction; returns how many.

    `most`: how many transactions; None: until nothing is noted. Several processes may do this.
    """
    told = batches = 0
    while most is None or batches < most:
        batch = _tell_some(records)
        if not batch:
            break
        told, batches = told + batch, batches + 1
    return told


def _tell_some(records: Records) -> int:
    some = sa.select(untold.c.run_id).distinct().limit(history.TOLD_AT_ONCE)
    with records.reading() as connection:
        if connection.execute(some.limit(1)).first() is None:
            return 0
    with records.transaction() as connection:
        identities = connection.execute(some).scalars().all()
        these = untold.delete().where(untold.c.run_id.in_(identities))
        names: dict[str, set[str]] = {}
        for row in connection.execute(these.returning(untold.c.run_id, untold.c.name)).all():
            names.setdefault(row.run_id, set()).add(row.name)
        running = runs.c.id.in_(identities), runs.c.finished_at.is_(None)
        for identity in connection.execute(sa.select(runs.c.id).where(*running)).scalars().all():
            history.tell(connection, identity, names[identity])
            early_verdicts.end_if_decided(connection, identity)
        return len(identities)
