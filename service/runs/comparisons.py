"""Comparisons of two evaluations: taken in, and what has come out of them by now."""

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.contract.api.comparisons import ComparedOut, ComparisonOut, MovedOut
from service.contract.api.evaluations import EvaluationOut
from service.contract.api.requests import ComparisonIn
from service.contract.api.scores import ScoreOut
from service.contract.errors import InvalidRequest
from service.contract.metrics import catalogue, signatures
from service.contract.plan import planning
from service.contract.plan.planning import Plan
from service.contract.plan.works import Blob, Work
from service.runs import base, captions, evaluations, moved
from service.runs.base import Run
from service.works.blobs import Blobs
from service.works.records import Records

_COLUMNS = "columns"


@dataclass(frozen=True)
class _Side:
    """One of the two, with all scores that its works have brought."""

    name: str
    evaluation: EvaluationOut
    scores: Mapping[str, ScoreOut]


def submit(records: Records, blobs: Blobs, request: ComparisonIn) -> str:
    """The id of the run."""
    sides = [
        _Side(name, evaluations.get(records, id_)[0], evaluations.brought(records, id_))
        for name, id_ in (("a", request.a), ("b", request.b))
    ]
    _check_dataset(*sides)
    names = _names(request, sides)
    for place, name in enumerate(names):
        pointer = f"/metrics/{place}" if request.metrics is not None else ""
        _check_metric(name, sides, pointer)
    if any(catalogue.metric(name).family == "postgen" for name in names):
        _check_images(records, blobs, request)
    plan = _plan(records, names, sides)
    identity = f"cp_{secrets.token_urlsafe(18)}"
    kept = {**request.model_dump(), "metrics": names}
    pinned = captions.pinned_of(records, sides[0].evaluation)
    run = Run(identity, kept, pinned, plan, [], request.deadline)
    with records.transaction() as connection:
        base.insert(connection, records, run)
    return identity


def get(records: Records, blobs: Blobs, identity: str) -> tuple[ComparisonOut, int]:
    """The run and its version."""
    with records.reading() as connection:
        row, rows = base.look(connection, identity)
        common = base.answer(connection, row, rows)
    request = json.loads(row.request)
    found: dict[str, Any] = {}
    for at in rows:
        if at["status"] == "done" and at["summary"]:
            found |= json.loads(at["summary"])["comparison"]
    full = {name: catalogue.metric(name).name for name in request["metrics"]}
    scores = {name: _compared(found[of]) for name, of in full.items() if of in found}
    over = row.status == "succeeded"
    return ComparisonOut(
        **common,
        a=request["a"],
        b=request["b"],
        scores=scores,
        images=_images(records, blobs, request, list(scores)) if over else [],
    ), row.version


def _check_dataset(a: _Side, b: _Side) -> None:
    for field in ("digest", "split"):
        one, other = (getattr(side.evaluation.dataset, field) for side in (a, b))
        if one != other:
            raise InvalidRequest(
                f"a and b are not of the same images: the dataset's {field} is {one} for a, "
                f"{other} for b",
                [("/b", f"expected an evaluation of the same {field}")],
            )


def _names(request: ComparisonIn, sides: Sequence[_Side]) -> list[str]:
    if request.metrics is not None:
        return catalogue.expand(request.metrics)
    a, b = (side.evaluation.scores for side in sides)
    names = [name for name in a if name in b and catalogue.is_summed(name)]
    if not names:
        raise InvalidRequest(
            f"{request.a} and {request.b} have no score in common (yet)",
            [("", "expected two evaluations that both show a metric")],
        )
    return names


def _check_metric(name: str, sides: Sequence[_Side], pointer: str) -> None:
    if not catalogue.is_summed(name):
        raise InvalidRequest(
            f"{name} cannot be compared: it is no sum or mean over images",
            [(pointer, f"expected a post-gen metric, or one of {', '.join(catalogue.SUMMED)}")],
        )
    full = catalogue.metric(name).name
    for side in sides:
        if full not in side.scores:
            raise InvalidRequest(
                f"{side.evaluation.id} has no score {name} (yet)",
                [(pointer or f"/{side.name}", "expected a metric that both have")],
            )
    differs = signatures.difference(*(side.scores[full].signature for side in sides))
    if differs is not None:
        raise InvalidRequest(
            f"{name} of a and of b was not computed alike: {differs}",
            [(pointer or "/b", differs)],
        )


def _check_images(records: Records, blobs: Blobs, request: ComparisonIn) -> None:
    a, b = (
        {place for place, _ in captions.pairs_of(records, blobs, of)}
        for of in (request.a, request.b)
    )
    if a != b:
        raise InvalidRequest(
            f"a and b answer different images: {len(a - b)} that b does not, "
            f"{len(b - a)} that a does not",
            [("/b", "expected captions of the same images")],
        )


def _plan(records: Records, names: Sequence[str], sides: Sequence[_Side]) -> Plan:
    """A work for each family, and one for all pre-gen metrics."""
    specs = [catalogue.metric(name) for name in names]
    pregen = [spec.name for spec in specs if spec.family == "pregen"]
    families = catalogue.works_of(spec.name for spec in specs if spec.family == "postgen")
    named: dict[str, Work] = {}
    for family in [*families, *([_COLUMNS] if pregen else [])]:
        found = [base.result_of(records, side.evaluation.id, family) for side in sides]
        a, b = (_there(digest, family, side) for digest, side in zip(found, sides, strict=True))
        named[family] = planning.comparison(a, b, pregen if family == _COLUMNS else ())
    return Plan(named)


def _there(digest: str | None, family: str, side: _Side) -> Blob:
    if digest is None:
        raise InvalidRequest(
            f"{side.evaluation.id} has no {family} (yet)",
            [(f"/{side.name}", f"expected an evaluation whose {family} are done")],
        )
    return Blob(digest)


def _compared(found: Mapping[str, Any]) -> ComparedOut:
    a, b = (_finite(found[side]) for side in ("a", "b"))
    return ComparedOut(**{**found, "a": a, "b": b})


def _finite(value: float | None) -> float | None:
    """JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None


def _images(
    records: Records, blobs: Blobs, request: Mapping[str, Any], names: Sequence[str]
) -> list[MovedOut]:
    if all(catalogue.metric(name).family == "pregen" for name in names):
        return []
    a, b = (captions.rows_of(records, blobs, request[side]) for side in ("a", "b"))
    return moved.most(a, b, names)
