"""What a record from a backup has to forget: who worked, and what was sent to which queue."""

import time

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.works import graph
from service.works.tables import attempts, outbox, runs, work_rows

_UNFINISHED = ("waiting", "ready", "running")


def begin_again(connection: Connection, elapsed: float) -> None:
    """Let what was running begin anew, and what is unfinished have as long as it had left, though
    `elapsed` seconds have passed. Wake-ups of all that is ready are sent anew.
    """
    running = work_rows.c.status == "running"
    connection.execute(
        work_rows.update().where(running).values(status="ready", worker=None, **graph.FRESH)
    )
    open_ones = attempts.c.ended_at.is_(None)
    connection.execute(
        attempts.update().where(open_ones).values(ended_at=time.time(), outcome="restored")
    )
    connection.execute(outbox.delete())
    ready = sa.select(work_rows.c.key, work_rows.c.queue).where(work_rows.c.status == "ready")
    connection.execute(outbox.insert().from_select(["work_key", "queue"], ready))
    unfinished = work_rows.c.status.in_(_UNFINISHED)
    later = work_rows.c.deadline + max(0.0, elapsed)
    anew = {"deadline": later, "rung_at": 0.0, "ready_at": time.time()}
    connection.execute(work_rows.update().where(unfinished).values(**anew))
    connection.execute(
        runs.update()
        .where(runs.c.finished_at.is_(None))
        .values(deadline=runs.c.deadline + sa.literal(max(0.0, elapsed)))
    )
