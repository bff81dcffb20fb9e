"""Early verdicts: an evaluation with `until: verdict` ends when its gates are decided, and its
unfinished tasks are canceled.
"""

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.results import StoredEvaluation
from service.engine import graph, history, verdicts
from service.engine.kept import summaries
from service.engine.tables import runs
from service.engine.teams import owned


def update_runs(connection: Connection, keys: Iterable[str]) -> None:
    """Update the runs of tasks that have ended; a run with `until: verdict` may end now."""
    for identity in history.update_runs(connection, keys):
        end_if_decided(connection, identity)


@owned.for_all_teams
def end_if_decided(connection: Connection, identity: str) -> None:
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
    summaries.fill(connection, rows)
    _, verdict = verdicts.of(rows, request)
    if verdict is not None and all(row["status"] != "failed" for row in rows):
        history.end_run(connection, identity, "succeeded")
        graph.cancel_tasks(connection, identity)
