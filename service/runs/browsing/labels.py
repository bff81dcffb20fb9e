"""The labels that a team's evaluations have, for choosing one."""

from itertools import groupby

import sqlalchemy as sa

from prescore.models.evaluations import LABELLED, MOST_LABELS, Label, LabelList, LabelValue
from service.contract.api.field_types import moment
from service.engine.service_parts import ServiceParts
from service.engine.tables import labels, runs
from service.runs import evaluations, search
from service.runs.search import Asked


def used(parts: ServiceParts, dataset: str | None) -> LabelList:
    """Names and values of the latest evaluations, those of the latest one first. `dataset`:
    `name[@version][/split]`.
    """
    of = runs.c.kind == evaluations.KIND.name, *search.meeting(Asked(dataset))
    newest = sa.select(runs.c.id).where(*of).order_by(runs.c.created_at.desc(), runs.c.id.desc())
    few = newest.limit(LABELLED).subquery()
    latest = sa.func.max(labels.c.created_at)
    counted = (
        sa.select(labels.c.name, labels.c.value, sa.func.count().label("many"), latest.label("at"))
        .join(few, few.c.id == labels.c.run_id)
        .group_by(labels.c.name, labels.c.value)
        .subquery()
    )
    named, order = counted.c.name, (counted.c.at.desc(), counted.c.value)
    placed = sa.select(
        *counted.c,
        sa.func.row_number().over(partition_by=named, order_by=order).label("place"),
        sa.func.max(counted.c.at).over(partition_by=named).label("named_at"),
    ).subquery()
    query = sa.select(*placed.c).where(placed.c.place <= MOST_LABELS + 1)
    query = query.order_by(placed.c.named_at.desc(), placed.c.name, placed.c.place)
    with parts.records.reading() as connection:
        rows = connection.execute(query).all()
    found = [(name, list(own)) for name, own in groupby(rows, key=lambda row: row.name)]
    return LabelList(
        items=[
            Label(
                name=name,
                values=[
                    LabelValue(value=row.value, evaluations=row.many, latest=moment(row.at))
                    for row in own[:MOST_LABELS]
                ],
                more_values=len(own) > MOST_LABELS,
            )
            for name, own in found[:MOST_LABELS]
        ],
        more_names=len(found) > MOST_LABELS,
    )
