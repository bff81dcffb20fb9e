"""What a record from a backup has to forget: who worked, and what was sent to which queue."""

import time

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.engine import graph
from service.engine.tables import attempts, outbox, runs, task_rows

_UNFINISHED = ("waiting", "ready", "running")


def begin_again(connection: Connection, elapsed: float) -> None:
    """Let what was running begin anew, and what is unfinished have as long as it had left, though
    `elapsed` seconds have passed. Wake-ups of all that is ready are sent anew.
    """
    running = task_rows.c.status == "running"
    connection.execute(
        task_rows.update().where(running).values(status="ready", worker=None, **graph.FRESH)
    )
    open_ones = attempts.c.ended_at.is_(None)
    connection.execute(
        attempts.update().where(open_ones).values(ended_at=time.time(), outcome="restored")
    )
    connection.execute(outbox.delete())
    ready = sa.select(task_rows.c.key, task_rows.c.queue).where(task_rows.c.status == "ready")
    connection.execute(outbox.insert().from_select(["task_key", "queue"], ready))
    unfinished = task_rows.c.status.in_(_UNFINISHED)
    later = task_rows.c.deadline + max(0.0, elapsed)
    anew = {"deadline": later, "rung_at": 0.0, "ready_at": time.time()}
    connection.execute(task_rows.update().where(unfinished).values(**anew))
    connection.execute(
        runs.update()
        .where(runs.c.finished_at.is_(None))
        .values(deadline=runs.c.deadline + sa.literal(max(0.0, elapsed)))
    )
