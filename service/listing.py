"""Lists in pages: opaque cursors that neither repeat nor skip while new rows arrive."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from service import evaluations
from service.contract.errors import InvalidCursor
from service.contract.records import Records
from service.contract.schemas import Page
from service.contract.tables import evaluations as rows
from service.contract.tables import labels


def list_evaluations(
    records: Records,
    dataset: str | None,
    status: str | None,
    wanted: Mapping[str, str],
    limit: int,
    cursor: str | None,
) -> Page:
    """The latest first; a page begins after the row that its cursor names."""
    query = sa.select(rows.c.id, rows.c.created_at)
    if dataset is not None:
        name, _, version = dataset.partition("@")
        query = query.where(rows.c.dataset_name == name)
        if version:
            query = query.where(rows.c.dataset.like(f'%"version":"{version}"%'))
    if status is not None:
        query = query.where(rows.c.status == status)
    for name, value in wanted.items():
        having = sa.select(labels.c.evaluation_id).where(
            labels.c.name == name, labels.c.value == value
        )
        query = query.where(rows.c.id.in_(having))
    if cursor is not None:
        created_at, identity = _read(cursor)
        query = query.where(
            sa.tuple_(rows.c.created_at, rows.c.id) < sa.tuple_(created_at, identity)
        )
    query = query.order_by(rows.c.created_at.desc(), rows.c.id.desc()).limit(limit + 1)
    with records.reading() as connection:
        found = connection.execute(query).all()
    items = [evaluations.get(records, row.id)[0] for row in found[:limit]]
    if len(found) <= limit:
        return Page(items=items, next=None)
    last = found[limit - 1]
    return Page(items=items, next=_write(last.created_at, last.id))


def _write(*position: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[float, str]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        created_at, identity = json.loads(base64.urlsafe_b64decode(padded))
        if isinstance(created_at, float) and isinstance(identity, str):
            return created_at, identity
    except ValueError:
        pass
    raise InvalidCursor("expected the `next` of an earlier answer")
