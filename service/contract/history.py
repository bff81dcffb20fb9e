"""How evaluations follow their works: versions, events, and a last word that never changes."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract import works
from service.contract.tables import evaluation_works, evaluations, events, work_rows

_TOLD = ("status", "done", "total", "attempt", "error", "summary", "started_at", "finished_at")


def tell_about(connection: Connection, keys: Iterable[str]) -> None:
    """The evaluations that hold these works have a new version, and events that say why."""
    concerned = connection.execute(
        sa.select(
            evaluation_works.c.evaluation_id,
            evaluation_works.c.name,
            *(work_rows.c[name] for name in _TOLD),
        )
        .join(work_rows, work_rows.c.key == evaluation_works.c.work_key)
        .join(evaluations, evaluations.c.id == evaluation_works.c.evaluation_id)
        .where(work_rows.c.key.in_(list(keys)), evaluations.c.finished_at.is_(None))
    ).all()
    for row in concerned:
        tell(connection, row.evaluation_id, "work", _work_event(row))
        summary = json.loads(row.summary or "{}")
        if row.status == "done" and "scores" in summary:
            tell(connection, row.evaluation_id, "scores", summary)
    for identity in dict.fromkeys(row.evaluation_id for row in concerned):
        settle(connection, identity)


def _work_event(row: Row[Any]) -> dict[str, Any]:
    return {
        "name": row.name,
        "status": row.status,
        "progress": {"done": row.done, "total": row.total},
        "attempts": row.attempt,
        "error": json.loads(row.error) if row.error else None,
    }


def settle(connection: Connection, identity: str) -> None:
    """Derives an evaluation's state; at the end it is written down and never changes again."""
    rows = [dict(row._mapping) for row in work_statuses(connection, identity)]  # noqa: SLF001
    status = works.derive(row["status"] for row in rows)
    if status in works.ENDED:
        _end(connection, identity, status, rows)
    else:
        _change(connection, identity, status=status)


def freeze_canceled(connection: Connection, identity: str) -> None:
    """A canceled evaluation ends at once, though works that it shares with others go on."""
    rows = [dict(row._mapping) for row in work_statuses(connection, identity)]  # noqa: SLF001
    open_ones = [row for row in rows if row["status"] not in works.TERMINAL]
    for row in open_ones:
        row["status"] = "canceled"
    if open_ones:
        _end(connection, identity, "canceled", rows)


def _end(
    connection: Connection, identity: str, status: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    snapshot = json.dumps([dict(row) for row in rows])
    if _change(connection, identity, status=status, finished_at=time.time(), snapshot=snapshot):
        tell(connection, identity, "end", {"status": status})


def _change(connection: Connection, identity: str, **values: Any) -> bool:
    """Only while the evaluation has not ended."""
    changed = connection.execute(
        evaluations.update()
        .where(evaluations.c.id == identity, evaluations.c.finished_at.is_(None))
        .values(**values)
    )
    return changed.rowcount == 1


def tell(connection: Connection, identity: str, kind: str, payload: Mapping[str, Any]) -> None:
    """A new version of an evaluation; its number is the event's id."""
    connection.execute(
        evaluations.update()
        .where(evaluations.c.id == identity)
        .values(version=evaluations.c.version + 1)
    )
    version = sa.select(evaluations.c.version).where(evaluations.c.id == identity)
    connection.execute(
        events.insert().values(
            evaluation_id=identity,
            version=version.scalar_subquery(),
            kind=kind,
            payload=json.dumps(dict(payload)),
        )
    )


def work_statuses(connection: Connection, identity: str) -> Sequence[Row[Any]]:
    return connection.execute(
        sa.select(evaluation_works.c.name, work_rows)
        .join(work_rows, work_rows.c.key == evaluation_works.c.work_key)
        .where(evaluation_works.c.evaluation_id == identity)
        .order_by(evaluation_works.c.position)
    ).all()
