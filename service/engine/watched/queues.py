"""How many tasks queues have, and since when: read by indexes that have what is asked for. For the
tasks of one team, the rows of all tasks with these statuses are read.
"""

from collections.abc import Mapping
from itertools import product

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.runs import TaskStatus
from service.contract.plan.tasks import QUEUES
from service.engine.tables import task_rows

NAMES = tuple(queue for queues in QUEUES.values() for queue in queues)
# As in the index's own condition: a plan that is made before values are known needs it there.
_READY = sa.text("status = 'ready'")


def counted(
    connection: Connection, *statuses: TaskStatus, payer: str | None = None
) -> Mapping[tuple[str, str], int]:
    """How many tasks each queue has with each of these statuses; `payer`: of this team's alone.
    Nothing is missing: 0 where there is none.
    """
    of = task_rows.c.queue, task_rows.c.status
    query = sa.select(*of, sa.func.count()).group_by(*of)
    query = query.where(task_rows.c.queue.in_(NAMES), task_rows.c.status.in_(statuses))
    if payer is not None:
        query = query.where(task_rows.c.payer == payer)
    found = {(queue, status): count for queue, status, count in connection.execute(query)}
    return {pair: found.get(pair, 0) for pair in product(NAMES, statuses)}


def longest_ready(connection: Connection, now: float) -> Mapping[str, float | None]:
    """For how many seconds the longest ready task of each queue has been ready."""
    first = sa.func.min(task_rows.c.ready_at)
    found: dict[str, float | None] = {}
    for queue in NAMES:
        query = sa.select(first).where(task_rows.c.queue == queue, _READY)
        since = connection.execute(query).scalar()
        found[queue] = None if since is None else max(0.0, now - since)
    return found
