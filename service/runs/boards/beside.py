"""Another metric of the evaluations on a board."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.leaderboard import ScoreBeside
from service.contract.metrics import catalogue
from service.engine.records import in_batches
from service.engine.tables import runs, score_rows
from service.runs.boards.finding import Asked, find
from service.stored.datasets import PinnedSplit

_SHOWN = tuple(score_rows.c[name] for name in ("run_id", "value", "low", "high"))


@dataclass(frozen=True)
class Beside:
    """A metric's scores with one signature, by evaluation."""

    metric: str
    signature: str | None
    scores: Mapping[str, ScoreBeside]


def of(
    connection: Connection,
    pinned: PinnedSplit,
    asked: Asked,
    metric: str,
    checkpoints: Mapping[str, str | None],
) -> Beside:
    """The metric of these evaluations, whose checkpoints are given: of the evaluation itself, or of
    another one of the same checkpoint.
    """
    found = find(connection, pinned, replace(asked, metric=metric, signature=None))
    on_board = score_rows.c.board_id == found.board, score_rows.c.listed
    own = sa.select(*_SHOWN).where(
        *on_board, score_rows.c.metric.in_(catalogue.list_metric_names(metric))
    )
    again = sa.select(runs.c.checkpoint, *_SHOWN).join(runs, runs.c.id == score_rows.c.run_id)
    scores: dict[str, ScoreBeside] = {}
    for some in in_batches(checkpoints):
        for row in connection.execute(own.where(score_rows.c.run_id.in_(some))):
            scores[row.run_id] = _score(row)
        wanted = {at for one in some if one not in scores and (at := checkpoints[one])}
        ordered = again.where(*on_board, runs.c.checkpoint.in_(wanted))
        latest = {
            row.checkpoint: _score(row)
            for row in connection.execute(ordered.order_by(score_rows.c.created_at))
        }
        scores |= {
            one: latest[at]
            for one in some
            if one not in scores and (at := checkpoints[one]) in latest
        }
    return Beside(metric, found.signature, scores)


def _score(row: Any) -> ScoreBeside:
    interval = None if row.low is None else (row.low, row.high)
    return ScoreBeside(evaluation=row.run_id, value=row.value, interval=interval)
