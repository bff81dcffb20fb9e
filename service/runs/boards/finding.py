"""Which board a request means: scores of a metric on a split, with one signature."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.metrics import catalogue
from service.engine.tables import boards, labels, score_rows
from service.runs import base, search
from service.stored.datasets import PinnedSplit


@dataclass(frozen=True)
class Asked:
    """A request; `signature` None: that of the latest evaluation."""

    dataset: str
    split: str | None
    metric: str
    signature: str | None
    labels: Mapping[str, str]
    beside: Sequence[str] = ()  # other metrics of the same evaluations


@dataclass(frozen=True)
class Found:
    """The board of the asked signature, if there is one; `others`: counts of the other ones."""

    pinned: PinnedSplit
    board: int | None
    signature: str | None
    others: Mapping[str, int]


def find(connection: Connection, pinned: PinnedSplit, asked: Asked) -> Found:
    metric = catalogue.find_metric(asked.metric).name
    these = base.on_split(pinned, boards), boards.c.metric == metric
    query = _counts(connection, asked) if asked.labels else _COUNTS
    rows = connection.execute(query.where(*these)).all()
    latest = sorted((row for row in rows if row.many), key=lambda row: row.latest, reverse=True)
    signature = asked.signature or (latest[0].signature if latest else None)
    board = next((row.id for row in latest if row.signature == signature), None)
    others = {row.signature: row.many for row in latest if row.signature != signature}
    return Found(pinned, board, signature, others)


_COUNTS = sa.select(
    boards.c.id,
    boards.c.signature,
    boards.c.listed.label("many"),
    sa.select(sa.func.max(score_rows.c.created_at))
    .where(score_rows.c.board_id == boards.c.id, score_rows.c.listed)
    .scalar_subquery()
    .label("latest"),
)


def _counts(connection: Connection, asked: Asked) -> sa.Select[Any]:
    """As _COUNTS, of the scores with these labels."""
    return (
        sa.select(
            boards.c.id,
            boards.c.signature,
            sa.func.count().label("many"),
            sa.func.max(score_rows.c.created_at).label("latest"),
        )
        .select_from(labels)
        .join(score_rows, score_rows.c.run_id == labels.c.run_id)
        .join(boards, boards.c.id == score_rows.c.board_id)
        .where(
            score_rows.c.metric.in_(catalogue.list_metric_names(asked.metric)),
            score_rows.c.listed,
            *search.marked(connection, asked.labels),
        )
        .group_by(boards.c.id, boards.c.signature)
    )
