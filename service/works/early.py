"""Evaluations that end with their verdict, if they were asked to: what is left is not wanted."""

import json
from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.works import graph, history, verdicts
from service.works.tables import evaluations


def tell_about(connection: Connection, keys: Iterable[str]) -> None:
    """These works have ended: who holds them is told, and may have a verdict now."""
    for identity in history.tell_about(connection, keys):
        end_if_decided(connection, identity)


def end_if_decided(connection: Connection, identity: str) -> None:
    """As soon as every gate has its verdict; with a work that failed, not before all have ended."""
    kept = connection.execute(
        sa.select(evaluations.c.request).where(
            evaluations.c.id == identity, evaluations.c.finished_at.is_(None)
        )
    ).scalar()
    request = json.loads(kept or "{}")
    if request.get("until") != "verdict":
        return
    rows = history.work_statuses(connection, identity)
    _, verdict = verdicts.of(rows, request)
    if verdict is not None and all(row["status"] != "failed" for row in rows):
        history.freeze(connection, identity, "succeeded")
        graph.drop(connection, identity)
