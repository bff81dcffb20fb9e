"""Which evaluations of a split a correlation study can be made of, and which not."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract.api.studies import LeftOut
from service.contract.metrics.catalogue import kind_of
from service.contract.plan import studies
from service.contract.plan.studies import FAMILIES, SORTED_BY, Idf, Studied
from service.contract.plan.works import Blob, Work
from service.stored.datasets import Pinned
from service.works.tables import evaluation_works, evaluations, work_rows

MOST = 200  # the latest ones: 15 rows of each
_OTHERS = ("columns", "captions", "references")


@dataclass(frozen=True)
class Material:
    """`models`: the strata of each, by its evaluation, the latest first."""

    models: Mapping[str, Work]
    left_out: Sequence[LeftOut]


@dataclass(frozen=True)
class _Finished:
    """What an evaluation's works have brought: results by name, and signatures of the scores."""

    id: str
    results: Mapping[str, str]
    signatures: Mapping[str, str]


def find(connection: Connection, dataset: Pinned, idf: Idf) -> Material:
    """One evaluation for each model; all scores by one metric have one signature."""
    finished = list(_finished(connection, dataset))
    left_out: list[LeftOut] = []
    whole = [each for each in finished if _is_whole(each, left_out)]
    alike = list(_alike(whole, left_out))
    strata = {each.id: studies.strata(_studied(each), idf) for each in alike}
    broken = _failed(connection, [work.key for work in strata.values()])
    once: dict[str, tuple[str, Work]] = {}
    for identity, work in strata.items():
        if work.key in broken:
            reason = f"its strata failed: {broken[work.key]}"
            left_out.append(LeftOut(evaluation=identity, metric=None, reason=reason))
        else:
            once.setdefault(work.key, (identity, work))
    return Material(dict(once.values()), left_out)


def _finished(connection: Connection, dataset: Pinned) -> Iterator[_Finished]:
    query = (
        sa.select(evaluations.c.id)
        .where(
            evaluations.c.id.startswith("ev_", autoescape=True),
            evaluations.c.dataset == dataset.out.model_dump_json(),
            evaluations.c.checkpoint.is_not(None),
            evaluations.c.status.in_(("succeeded", "failed")),
        )
        .order_by(evaluations.c.finished_at.desc(), evaluations.c.id.desc())
        .limit(MOST)
    )
    identities = connection.execute(query).scalars().all()
    found: dict[str, list[Any]] = {identity: [] for identity in identities}
    columns = (evaluation_works.c.evaluation_id, evaluation_works.c.name, work_rows.c.result)
    works = (
        sa.select(*columns, work_rows.c.summary)
        .join(work_rows, work_rows.c.key == evaluation_works.c.work_key)
        .where(
            evaluation_works.c.evaluation_id.in_(identities),
            work_rows.c.kind.in_([*_OTHERS, *FAMILIES]),
            work_rows.c.status == "done",
        )
        .order_by(evaluation_works.c.position)
    )
    for row in connection.execute(works):
        found[row.evaluation_id].append(row)
    for identity, rows in found.items():
        yield _Finished(
            identity,
            {row.name: row.result for row in rows},
            {row.name: _signature(row) for row in rows if kind_of(row.name) in FAMILIES},
        )


def _signature(row: Row[Any]) -> str:
    """Of all metrics that a family scores."""
    return json.dumps(json.loads(row.summary)["signature"], sort_keys=True)


def _is_whole(each: _Finished, left_out: list[LeftOut]) -> bool:
    missing = [name for name in (*_OTHERS, SORTED_BY) if name not in each.results]
    if missing:
        reason = f"it has no {', '.join(missing)}; strata are made by {SORTED_BY}"
        left_out.append(LeftOut(evaluation=each.id, metric=None, reason=reason))
    return not missing


def _alike(whole: Sequence[_Finished], left_out: list[LeftOut]) -> Iterator[_Finished]:
    """Those sorted as most are, with the families that are scored as most are."""
    sorted_alike = list(_as_most(whole, SORTED_BY, left_out))
    kept = {each.id: dict(each.results) for each in sorted_alike}
    families = {family for each in sorted_alike for family in each.signatures}
    for family in sorted(families - {SORTED_BY}):
        having = [each for each in sorted_alike if family in each.signatures]
        alike = {each.id for each in _as_most(having, family, left_out)}
        for each in having:
            if each.id not in alike:
                del kept[each.id][family]
    for each in sorted_alike:
        yield replace(each, results=kept[each.id])


def _as_most(
    having: Sequence[_Finished], family: str, left_out: list[LeftOut]
) -> Iterator[_Finished]:
    counts = Counter(each.signatures[family] for each in having)
    for each in having:
        ((usual, _),) = counts.most_common(1)
        if each.signatures[family] == usual:
            yield each
        else:
            metric = None if family == SORTED_BY else family
            reason = f"its {family} is signed {each.signatures[family]}, most are {usual}"
            left_out.append(LeftOut(evaluation=each.id, metric=metric, reason=reason))


def _studied(each: _Finished) -> Studied:
    blobs = {name: Blob(result) for name, result in each.results.items()}
    columns, captions, references = (blobs[name] for name in _OTHERS)
    scores = {name: blob for name, blob in blobs.items() if kind_of(name) in FAMILIES}
    return Studied(columns, scores, captions, references)


def _failed(connection: Connection, keys: Sequence[str]) -> dict[str, str]:
    """Why, by the keys of works that were tried in vain."""
    query = sa.select(work_rows.c.key, work_rows.c.error).where(
        work_rows.c.key.in_(keys), work_rows.c.status == "failed"
    )
    return {
        row.key: json.loads(row.error)["detail"] if row.error else "no reason is recorded"
        for row in connection.execute(query)
    }
