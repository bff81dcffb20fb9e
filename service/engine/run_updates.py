"""Updates of runs whose tasks have changed: early verdicts, and runs that were noted."""

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.results import StoredEvaluation
from service.engine import graph, history, summaries, tenancy, verdicts
from service.engine.records import Records
from service.engine.tables import runs, untold


def update_or_end_runs(connection: Connection, keys: Iterable[str]) -> None:
    """Update the runs of tasks that have ended; a run with `until: verdict` may end now."""
    for identity in history.update_runs(connection, keys):
        end_decided_run(connection, identity)


@tenancy.for_all_teams
def end_decided_run(connection: Connection, identity: str) -> None:
    """End a run with `until: verdict` if every gate is decided and no task has failed."""
    kept = connection.execute(
        sa.select(runs.c.request).where(runs.c.id == identity, runs.c.finished_at.is_(None))
    ).scalar()
    if kept is None:
        return
    request = StoredEvaluation.model_validate_json(kept)
    if request.until != "verdict":
        return
    rows = history.task_statuses(connection, identity)
    summaries.fill_summaries(connection, rows)
    _, verdict = verdicts.decide_gates(rows, request)
    if verdict is not None and all(row["status"] != "failed" for row in rows):
        history.end_run(connection, identity, "succeeded")
        graph.cancel_tasks(connection, identity)


def update_noted_runs(records: Records, most: int | None = None) -> int:
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
            history.update_run(connection, identity, names[identity])
            end_decided_run(connection, identity)
        return len(identities)
