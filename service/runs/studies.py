"""Correlation studies of a split's evaluations: correlations of pre-gen with post-gen scores."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from prescore.models.identifiers import STUDY
from prescore.models.studies import Correlated, Correlation, Study, StudyRun
from service.contract.api.analyses import StudyRequest
from service.contract.api.field_types import moment
from service.contract.errors import InvalidRequest
from service.contract.metrics import catalogue
from service.contract.plan import planning
from service.contract.plan.planning import SORTED_BY, STRATA, Plan
from service.contract.results import StoredStudy, StudyFile, StudyMetric, StudyPair
from service.engine.service_parts import ServiceParts
from service.engine.tables import runs
from service.runs import material
from service.runs.base import Kind, Looked, NewRun
from service.runs.material import Material
from service.stored import datasets
from service.stored.datasets import PinnedSplit

FEWEST = 3  # models; rank agreement needs so many
_HEADLINE = frozenset(catalogue.find_metric(name).name for name in catalogue.HEADLINE)
_STUDY = "study"


def begin(parts: ServiceParts, request: StudyRequest) -> NewRun:
    """Plan a study; InvalidRequest if there are too few evaluations or images."""
    pinned = datasets.pin_split(parts.records, request.dataset)
    with parts.records.reading() as connection:
        found = material.find(connection, pinned, request.idf)
    reason = hindrance(pinned, found)
    if reason is not None:
        raise InvalidRequest(reason, [("/dataset", "expected a split with more to study")])
    kept = StoredStudy(
        idf=request.idf,
        evaluations=list(found.models),
        left_out=list(found.left_out),
        limit=request.limit,
    )
    plan = Plan({_STUDY: planning.plan_study(found.models, str(pinned))})
    marks = {"idf": request.idf}
    return NewRun(
        KIND.new_id(),
        KIND.name,
        kept.model_dump(),
        pinned,
        plan,
        [],
        request.deadline,
        labels=marks,
        others=kept.evaluations,
    )


def _answer(parts: ServiceParts, looked: Looked) -> StudyRun:
    (task,) = looked.tasks
    done = task["status"] == "done"
    kept = looked.request(StoredStudy)
    return StudyRun(
        **looked.common,
        idf=kept.idf,
        study=read(parts, looked.row, task["result"], kept.limit)
        if done and looked.whole
        else None,
    )


def hindrance(pinned: PinnedSplit, given: Material) -> str | None:
    if pinned.images < STRATA:
        return f"{STRATA} strata need as many images, {pinned} has {pinned.images}"
    found = len(given.models)
    if found < FEWEST:
        return (
            f"a study needs finished evaluations of {FEWEST} models, with pre-gen scores and "
            f"{SORTED_BY}; {pinned} has {found}"
        )
    return None


def read(parts: ServiceParts, row: Row[Any], result: str, limit: int) -> Study:
    """The result that a study's task wrote; `limit`: pre-gen metrics to show for each metric."""
    found = StudyFile.model_validate_json(parts.blobs.path(result).read_bytes())
    kept = StoredStudy.model_validate_json(row.request)
    named = [*kept.evaluations, *(each.evaluation for each in kept.left_out)]
    there = _still_there(parts, named)
    return Study(
        idf=kept.idf,
        evaluations=[each for each in kept.evaluations if each in there],
        left_out=[each for each in kept.left_out if each.evaluation in there],
        rows=found.rows,
        pregen=found.pregen,
        metrics={name: _correlated(each, limit) for name, each in found.metrics.items()},
        finished_at=moment(row.finished_at),
    )


def _still_there(parts: ServiceParts, identities: Sequence[str]) -> set[str]:
    """Those of these evaluations that nobody has deleted."""
    query = sa.select(runs.c.id).where(runs.c.id.in_(identities))
    with parts.records.reading() as connection:
        return set(connection.execute(query).scalars())


def _correlated(found: StudyMetric, limit: int) -> Correlated:
    shown = [
        _correlation(place, each)
        for place, each in enumerate(found.correlations, 1)
        if place <= limit or each.metric in _HEADLINE
    ]
    return Correlated(
        rows=found.rows, of_images=found.of_images, reason=found.reason, correlations=shown
    )


def _correlation(place: int, each: StudyPair) -> Correlation:
    """A row of the answer; the study has one dataset, so its numbers are those over all."""
    (own,) = each.datasets.values()
    return Correlation(place=place, metric=each.metric, **own)


KIND = Kind(
    name="study",
    prefix=STUDY,
    noun="study",
    place="/v1/studies",
    out=StudyRun,
    answer=_answer,
)
