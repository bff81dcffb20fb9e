"""Numbers of the record, each read by an index that has what it needs. Counts by state and by
outcome read an index whole; the others cost as much as there are tasks that wait, run or failed.
"""

from collections.abc import Iterable, Iterator, Sequence

import sqlalchemy as sa
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from sqlalchemy.engine import Connection

from service.engine import fleet_status
from service.engine.leases import MAX_DEATHS
from service.engine.tables import (
    attempts,
    deliveries,
    outbox,
    past_attempts,
    runs,
    task_rows,
    webhooks,
)

# As in the index's own condition: a plan that is made before values are known needs it there.
_KILLERS = sa.text("deaths > 0")


def numbers(connection: Connection, now: float) -> Iterator[Metric]:
    yield _gauge("prescore_tasks", "Tasks by state.", _by(connection, task_rows.c.status), "status")
    meaning = "Evaluations by state."
    yield _gauge("prescore_evaluations", meaning, _by(connection, runs.c.status), "status")
    yield _attempts(connection)
    found = fleet_status.count_tasks(connection, "ready", "running", "failed")
    meaning = "Tasks of a queue by state: ready, running, failed."
    yield _gauge("prescore_queue_tasks", meaning, found.items(), "queue", "status")
    meaning = "Seconds since the longest ready task of a queue became ready; 0 if none is."
    yield _gauge("prescore_queue_oldest_seconds", meaning, _oldest(connection, now), "queue")
    meaning = "Tasks that failed since they killed the process that computed them."
    yield _gauge("prescore_quarantined", meaning, _quarantined(connection), "queue")
    meaning = "Wake-ups that were not sent to Redis yet."
    yield GaugeMetricFamily("prescore_outbox", meaning, value=_count(connection, outbox))
    yield from _outgoing(connection)
    yield from _ages(connection, now)


def _gauge(
    name: str, meaning: str, found: Iterable[tuple[Sequence[str], float]], *labels: str
) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, number in found:
        family.add_metric(values, number)
    return family


def _by(connection: Connection, column: "sa.Column[str]") -> Iterator[tuple[Sequence[str], int]]:
    query = sa.select(column, sa.func.count()).where(column.is_not(None)).group_by(column)
    for value, count in connection.execute(query):
        yield (value,), count


def _attempts(connection: Connection) -> Metric:
    """With those whose rows were deleted: a counter never falls."""
    meaning = "Attempts at tasks by how they ended."
    family = CounterMetricFamily("prescore_attempts", meaning, labels=("outcome",))
    there = sa.select(attempts.c.outcome, sa.func.count().label("many"))
    there = there.where(attempts.c.outcome.is_not(None)).group_by(attempts.c.outcome)
    every = sa.union_all(there, sa.select(past_attempts)).subquery()
    query = sa.select(every.c.outcome, sa.func.sum(every.c.many)).group_by(every.c.outcome)
    for outcome, many in connection.execute(query):
        family.add_metric((outcome,), int(many))
    return family


def _oldest(connection: Connection, now: float) -> Iterator[tuple[Sequence[str], float]]:
    for queue, seconds in fleet_status.find_longest_ready(connection, now).items():
        yield (queue,), seconds or 0.0


def _quarantined(connection: Connection) -> Iterator[tuple[Sequence[str], int]]:
    these = task_rows.c.status == "failed", task_rows.c.deaths >= MAX_DEATHS, _KILLERS
    query = sa.select(task_rows.c.queue, sa.func.count()).where(*these)
    rows = connection.execute(query.group_by(task_rows.c.queue))
    found = {queue: count for queue, count in rows}  # noqa: C416  a row is no tuple to mypy
    return (((queue,), found.get(queue, 0)) for queue in fleet_status.QUEUE_NAMES)


def _outgoing(connection: Connection) -> Iterator[Metric]:
    meaning = "Messages to webhooks that have not arrived yet."
    waiting = _count(connection, deliveries)
    yield GaugeMetricFamily("prescore_webhook_waiting", meaning, value=waiting)
    lost = connection.execute(sa.select(sa.func.sum(webhooks.c.lost))).scalar()
    meaning = "Messages to the present webhooks that were given up: dead letters."
    yield GaugeMetricFamily("prescore_webhook_dead_letters", meaning, value=int(lost or 0))


def _ages(connection: Connection, now: float) -> Iterator[Metric]:
    """Of what has never happened there is no number."""
    told = {
        fleet_status.LAST_JANITOR_ROUND: (
            "prescore_janitor_seconds",
            "Seconds since a janitor's last round.",
        ),
        fleet_status.LAST_BACKUP: (
            "prescore_backup_seconds",
            "Seconds since the last backup, if any.",
        ),
    }
    at = fleet_status.read_moments(connection)
    for moment, (name, meaning) in told.items():
        found = [((), max(0.0, now - at[moment]))] if moment in at else []
        yield _gauge(name, meaning, found)


def _count(connection: Connection, table: sa.Table) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
