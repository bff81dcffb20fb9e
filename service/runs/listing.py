"""Lists in pages: opaque cursors that neither repeat nor skip while new rows arrive."""

from collections.abc import Mapping

import sqlalchemy as sa

from service.contract.api.evaluations import EvaluationPage
from service.runs import cursors, evaluations, labelled
from service.works.records import Records
from service.works.tables import evaluations as rows

_LIST = "evaluations"
PARAMETERS = ("dataset", "status", "limit", "cursor")


def list_evaluations(
    records: Records,
    dataset: str | None,
    status: str | None,
    wanted: Mapping[str, str],
    limit: int,
    cursor: str | None,
) -> EvaluationPage:
    """The latest first; a page begins after the row that its cursor names."""
    query = sa.select(rows.c.id, rows.c.created_at).where(rows.c.id.startswith("ev_"))
    if dataset is not None:
        name, _, version = dataset.partition("@")
        query = query.where(rows.c.dataset_name == name)
        if version:
            query = query.where(rows.c.dataset.like(f'%"version":"{version}"%'))
    if status is not None:
        query = query.where(rows.c.status == status)
    query = query.where(*labelled.having(rows.c.id, wanted))
    if cursor is not None:
        created_at, identity = cursors.read(_LIST, cursor, float, str)
        query = query.where(
            sa.tuple_(rows.c.created_at, rows.c.id) < sa.tuple_(created_at, identity)
        )
    query = query.order_by(rows.c.created_at.desc(), rows.c.id.desc()).limit(limit + 1)
    with records.reading() as connection:
        found = connection.execute(query).all()
    items = [evaluations.get(records, row.id)[0] for row in found[:limit]]
    if len(found) <= limit:
        return EvaluationPage(items=items, next=None)
    last = found[limit - 1]
    return EvaluationPage(items=items, next=cursors.write(_LIST, last.created_at, last.id))
