"""How many works queues have, and since when: read by indexes that have what is asked for. For the
works of one team, the rows of all works with these statuses are read.
"""

from collections.abc import Mapping
from itertools import product

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.runs import WorkStatus
from service.contract.plan.works import QUEUES
from service.works.tables import work_rows

NAMES = tuple(queue for queues in QUEUES.values() for queue in queues)
# As in the index's own condition: a plan that is made before values are known needs it there.
_READY = sa.text("status = 'ready'")


def counted(
    connection: Connection, *statuses: WorkStatus, payer: str | None = None
) -> Mapping[tuple[str, str], int]:
    """How many works each queue has with each of these statuses; `payer`: of this team's alone.
    Nothing is missing: 0 where there is none.
    """
    of = work_rows.c.queue, work_rows.c.status
    query = sa.select(*of, sa.func.count()).group_by(*of)
    query = query.where(work_rows.c.queue.in_(NAMES), work_rows.c.status.in_(statuses))
    if payer is not None:
        query = query.where(work_rows.c.payer == payer)
    found = {(queue, status): count for queue, status, count in connection.execute(query)}
    return {pair: found.get(pair, 0) for pair in product(NAMES, statuses)}


def longest_ready(connection: Connection, now: float) -> Mapping[str, float | None]:
    """For how many seconds the longest ready work of each queue has been ready."""
    first = sa.func.min(work_rows.c.ready_at)
    found: dict[str, float | None] = {}
    for queue in NAMES:
        query = sa.select(first).where(work_rows.c.queue == queue, _READY)
        since = connection.execute(query).scalar()
        found[queue] = None if since is None else max(0.0, now - since)
    return found
