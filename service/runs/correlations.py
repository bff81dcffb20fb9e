"""The results of a split's correlation studies; starts no study."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.base import RunProblem
from prescore.models.runs import Progress
from prescore.models.studies import Correlations, Study, StudyIdf, StudyUnderWay
from service.contract.api.field_types import moment
from service.contract.errors import NotFound
from service.contract.metrics import catalogue
from service.engine import summaries
from service.engine.service_parts import ServiceParts
from service.engine.tables import labels, needs, run_tasks, runs, task_rows
from service.runs import correlation_studies, run_store
from service.stored import datasets
from service.stored.datasets import PinnedSplit

_COLUMNS = ("postgen", "place", "pregen", "r", "r2", "p", "spearman", "spearman_p", "models")


@dataclass(frozen=True)
class CorrelationsQuery:
    """A request; `limit`: pre-gen metrics to show for each metric, besides the headline ones."""

    dataset: str
    split: str | None = None
    idf: StudyIdf = "dataset"
    limit: int = 20


def find_correlations(parts: ServiceParts, asked: CorrelationsQuery) -> Correlations:
    """The last finished study and the one under way; starts no study."""
    pinned = datasets.pin_usual_split(parts.records, asked.dataset, asked.split)
    with parts.records.reading() as connection:
        found = correlation_studies.find_study_material(connection, pinned, asked.idf)
        latest = _latest(connection, pinned, asked.idf)
        finished = _latest(connection, pinned, asked.idf, status="succeeded")
        unfinished = latest if latest is not None and latest.status != "succeeded" else None
        under_way = None if unfinished is None else _under_way(connection, unfinished)
    return Correlations(
        dataset=pinned.out,
        study=None if finished is None else _last(parts, finished, asked.limit),
        under_way=under_way,
        none_because=correlation_studies.find_hindrance(pinned, found),
    )


def build_correlations_table(
    parts: ServiceParts, asked: CorrelationsQuery
) -> Iterator[Sequence[object]]:
    """The last finished study in full, as rows of a table, with the columns' names first."""
    pinned = datasets.pin_usual_split(parts.records, asked.dataset, asked.split)
    with parts.records.reading() as connection:
        finished = _latest(connection, pinned, asked.idf, status="succeeded")
    if finished is None:
        raise NotFound(f"no study of {pinned} has finished: begin one with POST /v1/studies")
    yield _COLUMNS
    for postgen, found in _last(parts, finished, len(catalogue.PREGEN)).metrics.items():
        for each in found.correlations:
            own = each.model_dump() | {"postgen": postgen, "pregen": each.metric}
            yield [own[name] for name in _COLUMNS]


def _latest(
    connection: Connection, pinned: PinnedSplit, idf: StudyIdf, status: str | None = None
) -> Row[Any] | None:
    """The latest study on a split, with the key of its task."""
    query = (
        run_store.ROW.add_columns(run_tasks.c.task_key)
        .join(run_tasks, run_tasks.c.run_id == runs.c.id)
        .join(labels, labels.c.run_id == runs.c.id)
        .where(
            runs.c.kind == correlation_studies.KIND.name,
            run_store.match_split(pinned),
            labels.c.name == "idf",
            labels.c.value == idf,
            *([] if status is None else [runs.c.status == status]),
        )
        .order_by(runs.c.created_at.desc(), runs.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).first()


def _under_way(connection: Connection, row: Row[Any]) -> StudyUnderWay:
    part = (
        sa.select(task_rows.c.status)
        .join(needs, needs.c.needs_key == task_rows.c.key)
        .where(needs.c.task_key == row.task_key)
    )
    statuses = connection.execute(part).scalars().all()
    own = connection.execute(
        sa.select(task_rows.c.error).where(task_rows.c.key == row.task_key)
    ).scalar()
    return StudyUnderWay(
        status=row.status,
        progress=Progress(done=statuses.count("done"), total=len(statuses)),
        error=RunProblem.model_validate_json(own) if own and row.status == "failed" else None,
        created_at=moment(row.created_at),
    )


def _last(parts: ServiceParts, row: Row[Any], limit: int) -> Study:
    (task,) = summaries.unpack_json(row.snapshot)
    return correlation_studies.read_study(parts, row, task["result"], limit)
