"""Charges: the seconds that attempts have taken, which count to the quota of the team that asked,
and to the turns of its callers. The price of a task, from which its turn follows, was a guess.
"""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.engine import quotas, turns
from service.engine.records import in_batches
from service.engine.tables import task_rows


def charge_attempts(connection: Connection, keys: Collection[str], now: float) -> None:
    """Charge the attempts at these tasks that have begun and end now. Not to be called for an
    attempt that was lost or handed back, which is not the asker's doing.
    """
    of = task_rows.c.queue, task_rows.c.caller, task_rows.c.payer, task_rows.c.price
    query = sa.select(*of, task_rows.c.started_at, task_rows.c.attempt)
    for batch in in_batches(keys):
        for row in connection.execute(query.where(task_rows.c.key.in_(batch))).all():
            if row.started_at is None:
                continue
            seconds = max(0.0, now - row.started_at)
            if row.payer is not None:
                quotas.add_usage(connection, row.payer, "device_seconds", seconds)
            if row.caller is not None:
                guessed = row.price if row.attempt == 1 else 0.0  # the turn has it once
                turns.shift_turns(connection, row.queue, row.caller, seconds - guessed)
