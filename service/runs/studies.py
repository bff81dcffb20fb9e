"""Correlation studies of a split's own evaluations: planned by who asks, where there is something
new to study; told as the last one found it.
"""

import json
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract.api.problems import RunProblem
from service.contract.api.runs import ProgressOut
from service.contract.api.studies import (
    CorrelatedOut,
    CorrelationOut,
    CorrelationsOut,
    LeftOut,
    StudyOut,
    StudyUnderWay,
)
from service.contract.api.times import rfc3339
from service.contract.errors import NotFound
from service.contract.metrics import catalogue
from service.contract.plan import studies
from service.contract.plan.planning import Plan
from service.contract.plan.studies import STRATA, Idf
from service.contract.plan.works import Work
from service.runs import base, csv_lines, studied
from service.runs.base import Run
from service.runs.studied import Material
from service.stored import datasets
from service.stored.datasets import Pinned
from service.works.blobs import Blobs
from service.works.records import Records
from service.works.tables import evaluation_works, labels, needs, work_rows
from service.works.tables import evaluations as rows_of_runs

FEWEST = 3  # models: fewer have no rank agreement
_AGAIN_SECONDS = 60.0  # after which one that failed is tried again
_DEADLINE_SECONDS = 3600.0
_HEADLINE = frozenset(catalogue.metric(name).name for name in catalogue.HEADLINE)
_CSV = ("postgen", "place", "pregen", "r", "r2", "p", "spearman", "spearman_p", "models")


@dataclass(frozen=True)
class Asked:
    """`limit`: so many of the best of each metric; the headline ones are there in any case."""

    dataset: str
    split: str | None = None
    idf: Idf = "dataset"
    limit: int = 20


def correlations(records: Records, blobs: Blobs, asked: Asked) -> tuple[CorrelationsOut, bool]:
    """And whether a study was planned."""
    pinned = datasets.pin_asked(records, asked.dataset, asked.split)
    with records.reading() as connection:
        material = studied.find(connection, pinned, asked.idf)
        due = _is_due(connection, pinned, asked.idf, material)
    if due:
        with records.transaction() as connection:
            due = _is_due(connection, pinned, asked.idf, material)  # others may have asked, too
            if due:
                _begin(connection, records, pinned, asked.idf, material)
    with records.reading() as connection:
        latest = _latest(connection, pinned, asked.idf)
        finished = _latest(connection, pinned, asked.idf, status="succeeded")
        open_one = latest if latest is not None and latest.status != "succeeded" else None
        under_way = None if open_one is None else _under_way(connection, open_one)
    return CorrelationsOut(
        dataset=pinned.out,
        study=None if finished is None else _study(blobs, finished, asked.limit),
        under_way=under_way,
        none_because=_hindrance(pinned, material),
    ), due


def sheet(records: Records, blobs: Blobs, asked: Asked) -> Iterator[str]:
    """The last study that finished, whole, as CSV."""
    pinned = datasets.pin_asked(records, asked.dataset, asked.split)
    with records.reading() as connection:
        finished = _latest(connection, pinned, asked.idf, status="succeeded")
    if finished is None:
        raise NotFound(f"no study of {pinned} has finished (yet)")
    yield csv_lines.line(_CSV)
    for postgen, found in _study(blobs, finished, len(catalogue.PREGEN)).metrics.items():
        for each in found.correlations:
            own = each.model_dump() | {"postgen": postgen, "pregen": each.metric}
            yield csv_lines.line(own[name] for name in _CSV)


def _hindrance(pinned: Pinned, material: Material) -> str | None:
    if pinned.images < STRATA:
        return f"{STRATA} strata need as many images, {pinned} has {pinned.images}"
    found = len(material.models)
    if found < FEWEST:
        return (
            f"a study needs finished evaluations of {FEWEST} checkpoints, with pre-gen scores and "
            f"{studies.SORTED_BY}; {pinned} has {found}"
        )
    return None


def _is_due(connection: Connection, pinned: Pinned, idf: Idf, material: Material) -> bool:
    """Unless one is under way, or has said all that there is to say."""
    if _hindrance(pinned, material) is not None:
        return False
    latest = _latest(connection, pinned, idf)
    if latest is None:
        return True
    if latest.finished_at is None:
        return False
    if latest.work_key != _work(pinned, material).key:
        return True
    tried = time.time() - latest.finished_at
    return bool(latest.status != "succeeded" and tried > _AGAIN_SECONDS)


def _begin(
    connection: Connection, records: Records, pinned: Pinned, idf: Idf, material: Material
) -> None:
    request = {
        "idf": idf,
        "evaluations": list(material.models),
        "left_out": [each.model_dump() for each in material.left_out],
    }
    plan = Plan({"study": _work(pinned, material)})
    identity = f"st_{secrets.token_urlsafe(18)}"
    run = Run(identity, request, pinned, plan, [], _DEADLINE_SECONDS, labels={"idf": idf})
    base.insert(connection, records, run)


def _work(pinned: Pinned, material: Material) -> Work:
    return studies.study(material.models, str(pinned))


def _latest(
    connection: Connection, pinned: Pinned, idf: Idf, status: str | None = None
) -> Row[Any] | None:
    """With the key of its work."""
    query = (
        sa.select(rows_of_runs, evaluation_works.c.work_key)
        .join(evaluation_works, evaluation_works.c.evaluation_id == rows_of_runs.c.id)
        .join(labels, labels.c.evaluation_id == rows_of_runs.c.id)
        .where(
            rows_of_runs.c.id.startswith("st_", autoescape=True),
            rows_of_runs.c.dataset == pinned.out.model_dump_json(),
            labels.c.name == "idf",
            labels.c.value == idf,
            *([] if status is None else [rows_of_runs.c.status == status]),
        )
        .order_by(rows_of_runs.c.created_at.desc(), rows_of_runs.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).first()


def _under_way(connection: Connection, row: Row[Any]) -> StudyUnderWay:
    part = (
        sa.select(work_rows.c.status)
        .join(needs, needs.c.needs_key == work_rows.c.key)
        .where(needs.c.work_key == row.work_key)
    )
    statuses = connection.execute(part).scalars().all()
    own = connection.execute(
        sa.select(work_rows.c.error).where(work_rows.c.key == row.work_key)
    ).scalar()
    return StudyUnderWay(
        status=row.status,
        progress=ProgressOut(done=statuses.count("done"), total=len(statuses)),
        error=RunProblem.model_validate_json(own) if own and row.status == "failed" else None,
        created_at=rfc3339(row.created_at),
    )


def _study(blobs: Blobs, row: Row[Any], limit: int) -> StudyOut:
    (work,) = json.loads(row.snapshot)
    found = json.loads(blobs.path(work["result"]).read_text("utf-8"))
    request = json.loads(row.request)
    return StudyOut(
        idf=request["idf"],
        evaluations=request["evaluations"],
        left_out=[LeftOut(**each) for each in request["left_out"]],
        rows=found["rows"],
        pregen=found["pregen"],
        metrics={name: _correlated(each, limit) for name, each in found["metrics"].items()},
        finished_at=rfc3339(row.finished_at),
    )


def _correlated(found: Mapping[str, Any], limit: int) -> CorrelatedOut:
    shown = [
        _correlation(place, each)
        for place, each in enumerate(found["correlations"], 1)
        if place <= limit or each["metric"] in _HEADLINE
    ]
    return CorrelatedOut(**{**found, "correlations": shown})


def _correlation(place: int, each: Mapping[str, Any]) -> CorrelationOut:
    """Of one dataset, within which all is as over all."""
    (own,) = each["datasets"].values()
    return CorrelationOut(place=place, metric=each["metric"], **own)
