"""What of an evaluation is there by now: its stage, its events."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from service.contract.api.evaluations import EvaluationOut
from service.contract.api.runs import RunOut
from service.contract.plan import works
from service.works.records import Records
from service.works.tables import events as event_rows

_EARLY = ("prefix", "columns", "pregen", "forecast")


def is_over(run: RunOut) -> bool:
    return run.status in works.ENDED


def is_early_enough(evaluation: EvaluationOut) -> bool:
    """The pre-gen scores are there, or will never be; without any, the end."""
    early = [work for work in evaluation.works if work.name in _EARLY]
    if not early:
        return is_over(evaluation)
    return all(work.status in works.TERMINAL for work in early)


def events(records: Records, identity: str, after: int) -> Sequence[Row[Any]]:
    with records.reading() as connection:
        return connection.execute(
            sa.select(event_rows)
            .where(event_rows.c.evaluation_id == identity, event_rows.c.version > after)
            .order_by(event_rows.c.version)
        ).all()
