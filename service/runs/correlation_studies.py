"""Correlation studies: the evaluations that they use, their plans and their answers."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.identifiers import STUDY
from prescore.models.studies import Correlated, Correlation, LeftOut, Study, StudyIdf, StudyRun
from service.contract.api.analyses import StudyRequest
from service.contract.api.field_types import moment
from service.contract.column_options import ColumnOptions
from service.contract.errors import InvalidRequest
from service.contract.metrics import catalogue
from service.contract.metrics.families import find_family_name
from service.contract.plan import planning
from service.contract.plan.planning import SORTED_BY, STRATA, STUDIED_FAMILIES, Plan, StudiedModel
from service.contract.plan.tasks import Blob, Task
from service.contract.results import (
    SignatureSummary,
    StoredStudy,
    StudyFile,
    StudyMetric,
    StudyPair,
)
from service.engine import summaries
from service.engine.records import in_batches
from service.engine.service_parts import ServiceParts
from service.engine.tables import run_tasks, runs, task_rows
from service.runs import evaluations, run_store
from service.runs.run_store import NewRun, RunKind, RunView
from service.stored import columns as columns_store
from service.stored import datasets
from service.stored.datasets import PinnedSplit

_MOST = 200  # the latest evaluations, each with 15 rows
_COLUMNS = "columns"
_OTHERS = (_COLUMNS, "captions", "references")
_BROUGHT = "brought"  # the kind of the task that reads columns of somebody's own code


@dataclass(frozen=True)
class StudyMaterial:
    """Evaluations of a study; `models`: evaluation -> the task of its strata, the latest first."""

    models: Mapping[str, Task]
    left_out: Sequence[LeftOut]


@dataclass(frozen=True)
class _FinishedEvaluation:
    """A finished evaluation: its tasks' results by name, and the signatures of its scores; that of
    its columns is their options, or how they were brought.
    """

    id: str
    results: Mapping[str, str]
    signatures: Mapping[str, str]


def find_study_material(
    connection: Connection, dataset: PinnedSplit, idf: StudyIdf
) -> StudyMaterial:
    """Find one evaluation of each model; all scores of a metric have one signature."""
    finished = list(_find_finished(connection, dataset))
    left_out: list[LeftOut] = []
    whole = [each for each in finished if _is_whole(each, left_out)]
    alike = list(_alike(whole, left_out))
    strata = {each.id: planning.plan_strata(_studied(each), idf) for each in alike}
    broken = _failed(connection, [task.key for task in strata.values()])
    once: dict[str, tuple[str, Task]] = {}
    for identity, task in strata.items():
        if task.key in broken:
            reason = f"its strata failed: {broken[task.key]}"
            left_out.append(LeftOut(evaluation=identity, metric=None, reason=reason))
        else:
            once.setdefault(task.key, (identity, task))
    return StudyMaterial(dict(once.values()), left_out)


def _find_finished(connection: Connection, dataset: PinnedSplit) -> Iterator[_FinishedEvaluation]:
    query = (
        sa.select(runs.c.id)
        .where(
            runs.c.kind == evaluations.KIND.name,
            run_store.match_split(dataset),
            sa.or_(runs.c.checkpoint.is_not(None), _has_columns()),
            runs.c.status.in_(("succeeded", "failed")),
        )
        .order_by(runs.c.finished_at.desc(), runs.c.id.desc())
        .limit(_MOST)
    )
    identities = connection.execute(query).scalars().all()
    found: dict[str, list[Any]] = {identity: [] for identity in identities}
    columns = ("kind", "status", "result", "summary", "summary_id", "parameters", "inputs")
    tasks = (
        sa.select(run_tasks.c.run_id, run_tasks.c.name, *(task_rows.c[name] for name in columns))
        .join(task_rows, task_rows.c.key == run_tasks.c.task_key)
        .where(
            run_tasks.c.run_id.in_(identities),
            task_rows.c.kind.in_([*_OTHERS, _BROUGHT, *STUDIED_FAMILIES]),
        )
        .order_by(run_tasks.c.run_id, run_tasks.c.position)
    )
    rows = [dict(row._mapping) for row in connection.execute(tasks).all()]  # noqa: SLF001
    done = [row for row in rows if row["status"] == "done"]
    summaries.fill_summaries(connection, [row for row in done if row["kind"] in STUDIED_FAMILIES])
    brought = [_brought(row) for row in done if row["kind"] == _BROUGHT]
    how = columns_store.find_signatures(connection, brought)
    for row in done:
        if row["kind"] != _BROUGHT or _brought(row) in how:  # else they were deleted
            found[row["run_id"]].append(row)
    for identity, rows in found.items():
        yield _FinishedEvaluation(
            identity,
            _sent_captions(rows) | {row["name"]: row["result"] for row in rows},
            {
                row["name"]: _signature(row)
                for row in rows
                if find_family_name(row["name"]) in STUDIED_FAMILIES
            }
            | {
                row["name"]: how[_brought(row)]
                if row["kind"] == _BROUGHT
                else _read_options(row).describe()
                for row in rows
                if row["name"] == _COLUMNS
            },
        )


def _has_columns() -> sa.Exists:
    """Condition that an evaluation has columns, which may have been brought."""
    of_run = run_tasks.c.run_id == runs.c.id
    return sa.exists().where(of_run, run_tasks.c.name == _COLUMNS)


def _brought(row: Mapping[str, Any]) -> tuple[str, str]:
    """The digest of columns that were brought, and which units of them are scored."""
    return json.loads(row["inputs"])[_COLUMNS], _read_options(row).units


def _sent_captions(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The captions that were sent beside columns: no task has made them."""
    inputs = (json.loads(row["inputs"]) for row in rows if row["name"] == SORTED_BY)
    return {
        name: given
        for one in inputs
        for name, given in one.items()
        if name == "captions" and not given.startswith("work:")
    }


def _signature(row: Mapping[str, Any]) -> str:
    """The signatures of all metrics of a family, as one text."""
    return json.dumps(
        SignatureSummary.model_validate_json(row["summary"]).signature, sort_keys=True
    )


def _read_options(row: Mapping[str, Any]) -> ColumnOptions:
    """Read the options of columns from their task's parameters."""
    return ColumnOptions.model_validate_json(row["parameters"])


def _is_whole(each: _FinishedEvaluation, left_out: list[LeftOut]) -> bool:
    missing = [name for name in (*_OTHERS, SORTED_BY) if name not in each.results]
    if missing:
        reason = f"it has no {', '.join(missing)}; strata are made by {SORTED_BY}"
        left_out.append(LeftOut(evaluation=each.id, metric=None, reason=reason))
    return not missing


def _alike(
    whole: Sequence[_FinishedEvaluation], left_out: list[LeftOut]
) -> Iterator[_FinishedEvaluation]:
    """The evaluations with the most frequent signature, of SORTED_BY, of columns and of each
    family.
    """
    sorted_alike = list(_as_most(whole, SORTED_BY, left_out))
    sorted_alike = list(_as_most(sorted_alike, _COLUMNS, left_out))
    kept = {each.id: dict(each.results) for each in sorted_alike}
    families = {family for each in sorted_alike for family in each.signatures}
    for family in sorted(families - {SORTED_BY, _COLUMNS}):
        having = [each for each in sorted_alike if family in each.signatures]
        alike = {each.id for each in _as_most(having, family, left_out)}
        for each in having:
            if each.id not in alike:
                del kept[each.id][family]
    for each in sorted_alike:
        yield replace(each, results=kept[each.id])


def _as_most(
    having: Sequence[_FinishedEvaluation], family: str, left_out: list[LeftOut]
) -> Iterator[_FinishedEvaluation]:
    counts = Counter(each.signatures[family] for each in having)
    for each in having:
        ((usual, _),) = counts.most_common(1)
        if each.signatures[family] == usual:
            yield each
        else:
            metric = None if family in {SORTED_BY, _COLUMNS} else family
            told = each.signatures[family]
            reason = (
                f"its {family} are of {told}, most are of {usual}"
                if family == _COLUMNS
                else f"its {family} is signed {told}, most are {usual}"
            )
            left_out.append(LeftOut(evaluation=each.id, metric=metric, reason=reason))


def _studied(each: _FinishedEvaluation) -> StudiedModel:
    blobs = {name: Blob(result) for name, result in each.results.items()}
    columns, captions, references = (blobs[name] for name in _OTHERS)
    scores = {
        name: blob for name, blob in blobs.items() if find_family_name(name) in STUDIED_FAMILIES
    }
    return StudiedModel(columns, scores, captions, references)


def _failed(connection: Connection, keys: Sequence[str]) -> dict[str, str]:
    """The errors of failed tasks, by key."""
    query = sa.select(task_rows.c.key, task_rows.c.error).where(task_rows.c.status == "failed")
    return {
        row.key: json.loads(row.error)["detail"] if row.error else "no reason is stored"
        for batch in in_batches(keys)
        for row in connection.execute(query.where(task_rows.c.key.in_(batch)))
    }


FEWEST = 3  # models; rank agreement needs so many
_HEADLINE = frozenset(catalogue.find_metric(name).name for name in catalogue.HEADLINE)
_STUDY = "study"


def begin_study(parts: ServiceParts, request: StudyRequest) -> NewRun:
    """Plan a study; InvalidRequest if there are too few evaluations or images."""
    pinned = datasets.pin_split(parts.records, request.dataset)
    with parts.records.reading() as connection:
        found = find_study_material(connection, pinned, request.idf)
    reason = find_hindrance(pinned, found)
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


def _answer(parts: ServiceParts, looked: RunView) -> StudyRun:
    (task,) = looked.tasks
    done = task["status"] == "done"
    kept = looked.request(StoredStudy)
    return StudyRun(
        **looked.common,
        idf=kept.idf,
        study=read_study(parts, looked.row, task["result"], kept.limit)
        if done and looked.whole
        else None,
    )


def find_hindrance(pinned: PinnedSplit, given: StudyMaterial) -> str | None:
    if pinned.images < STRATA:
        return f"a study needs {STRATA} images, and {pinned.place} has {pinned.images}"
    found = len(given.models)
    if found < FEWEST:
        return (
            f"a study needs finished evaluations of {FEWEST} models with pre-gen scores and "
            f"{SORTED_BY}; {pinned.place} has {found or 'none'}"
        )
    return None


def read_study(parts: ServiceParts, row: Row[Any], result: str, limit: int) -> Study:
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
    """Find those of these evaluations that are not deleted."""
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


KIND = RunKind(
    name="study",
    prefix=STUDY,
    noun="study",
    place="/v1/studies",
    out=StudyRun,
    answer=_answer,
)
