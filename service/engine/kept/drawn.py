"""Draws of scores, by which boards tell two systems apart: stored once for each task, beside its
summary, and named by the scores of evaluations that show them.
"""

import base64
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.engine.records import in_batches
from service.engine.tables import draws

_FIELD = "draws"  # of `results.ScoreSummary`


def take(connection: Connection, key: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Store the draws of a task that is done; returns the summary without them."""
    left: MutableMapping[str, Any] = dict(summary)
    found = left.pop(_FIELD, None)
    if found:
        connection.execute(draws.delete().where(draws.c.task_key == key))
        rows = [
            {"task_key": key, "metric": metric, "packed": base64.b64decode(text)}
            for metric, text in found.items()
        ]
        connection.execute(draws.insert(), rows)
    return dict(left)


def named(connection: Connection, keys: Iterable[str]) -> dict[str, int]:
    """By metric, the ids of the draws of tasks; of the first task that has the metric."""
    order = {key: at for at, key in enumerate(keys)}
    found: dict[str, tuple[int, int]] = {}
    query = sa.select(draws.c.id, draws.c.task_key, draws.c.metric)
    for batch in in_batches(order):
        for row in connection.execute(query.where(draws.c.task_key.in_(batch))):
            at = order[row.task_key], row.id
            found[row.metric] = min(at, found.get(row.metric, at))
    return {metric: at[1] for metric, at in found.items()}


def packed(connection: Connection, wanted: Iterable[int]) -> dict[int, bytes]:
    """Draws by id."""
    found: dict[int, bytes] = {}
    for batch in in_batches(dict.fromkeys(wanted)):
        rows = connection.execute(
            sa.select(draws.c.id, draws.c.packed).where(draws.c.id.in_(batch))
        )
        found |= {row.id: row.packed for row in rows}
    return found
