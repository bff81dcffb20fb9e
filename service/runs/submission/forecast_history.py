"""The history of a forecast: the finished evaluations of a split, found once at submission.

The history is stored as a blob, which the task `forecast` reads: an equal history and equal columns
make the same task. It never contains the evaluation's own checkpoint, nor its own columns. Columns
that were brought are forecast from columns alone, of the same signature.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.api.evaluations import EvaluationRequest
from service.contract.assets import AssetFolders
from service.contract.metrics import catalogue, signatures
from service.contract.plan import tasks
from service.contract.plan.estimates import PREDICTORS, explain_too_few
from service.contract.results import (
    ForecastHistory,
    MissingForecast,
    PastEvaluation,
    StoredEvaluation,
)
from service.engine import tables
from service.engine.service_parts import ServiceParts
from service.engine.tables import boards, labels, runs, score_rows
from service.runs import evaluations, run_store
from service.runs.submission import evaluation_plan
from service.stored import checkpoints, columns
from service.stored.datasets import PinnedSplit

_MOST = 200  # the latest evaluations; older ones say less, and each submission reads them all
_LABELS = ("run", "branch")  # the first of these labels that exists tells training runs apart


def find_history(
    parts: ServiceParts, request: EvaluationRequest, pinned: PinnedSplit
) -> str | MissingForecast | None:
    """The digest of the history, which is stored; or the reason why nothing can be forecast; None
    where a request asks for no forecast.
    """
    metrics = catalogue.expand_groups(request.postgen)
    has_pregen = request.has_probabilities and evaluation_plan.asks_for_pregen(request)
    if not has_pregen or not metrics:
        return None
    with parts.records.reading() as connection:
        past = _past(connection, parts.places, request, pinned, metrics)
    of = "checkpoints" if request.columns is None else "columns"
    reasons = [_too_few(past, metric, of) for metric in metrics]
    if None not in reasons:
        return MissingForecast(none_because=reasons[0] or "")
    history = ForecastHistory(metrics=metrics, evaluations=past)
    return parts.blobs.put(tasks.dump_canonical_json(history.model_dump()).encode())


def _too_few(past: Sequence[PastEvaluation], metric: str, of: str) -> str | None:
    runs = [one.run for one in past if one.scores.get(metric) is not None]
    return explain_too_few(len(runs), len(set(runs)), of)


def _past(
    connection: Connection,
    places: AssetFolders,
    request: EvaluationRequest,
    pinned: PinnedSplit,
    metrics: Sequence[str],
) -> list[PastEvaluation]:
    """The history: one evaluation of every checkpoint, or of all columns, the latest first."""
    if request.columns is None:
        found = _of_checkpoints(connection, places, request, pinned)
    else:
        found = _of_columns(connection, request, pinned)
    scores = _scores(connection, found, [*PREDICTORS, *metrics])
    marked = _labels(connection, found)
    return [
        PastEvaluation(
            run=_run(usual, marked.get(identity, {})),
            architecture=architecture,
            scores=scores[identity],
        )
        for identity, (architecture, usual) in found.items()
        if scores.get(identity, {}).keys() >= set(PREDICTORS)
    ]


def _of_checkpoints(
    connection: Connection, places: AssetFolders, request: EvaluationRequest, pinned: PinnedSplit
) -> dict[str, tuple[str, str]]:
    """Architecture and usual run by evaluation, the latest of each checkpoint whose tokens are of
    the same kind: scores of words and of pieces are signed differently.
    """
    query = (
        sa.select(runs.c.id, runs.c.checkpoint, runs.c.request, tables.checkpoints.c.description)
        .join(tables.checkpoints, tables.checkpoints.c.digest == runs.c.checkpoint)
        .where(runs.c.checkpoint != request.checkpoint)
    )
    own = sa.select(tables.checkpoints.c.description)
    asked = own.where(tables.checkpoints.c.digest == request.checkpoint)
    units = _units(json.loads(connection.execute(asked).scalar() or "{}"))
    latest: dict[str, str] = {}
    stored: dict[str, Any] = {}
    for row, _ in _ended(connection, query, request, pinned):
        if row.checkpoint in latest:
            continue
        described = json.loads(row.description)
        if _units(described) == units:
            latest[row.checkpoint], stored[row.checkpoint] = row.id, described
    found: dict[str, tuple[str, str]] = {}
    for digest, described in checkpoints.read_descriptions(connection, stored, places).items():
        architecture, config = described["architecture"], described.get("config", {})
        usual = " ".join(str(config[name]) for name in ("cell", "size") if name in config)
        found[latest[digest]] = architecture, f"{architecture} {usual}"
    return found


def _units(described: Mapping[str, Any]) -> str:
    """Units of a checkpoint's tokens, by its stored description."""
    return str(described.get("units", "words"))


def _of_columns(
    connection: Connection, request: EvaluationRequest, pinned: PinnedSplit
) -> dict[str, tuple[str, str]]:
    """Architecture and usual run by evaluation, the latest of all columns whose signature equals
    that of the request's. Nothing but a label tells which run columns are of.
    """
    assert request.columns is not None
    asked = request.columns, request.units
    how = columns.find_signatures(connection, [asked])
    if asked not in how:  # they were deleted just now
        return {}
    signature = signatures.sign_pregen(how[asked])
    query = (
        sa.select(runs.c.id, runs.c.request)
        .join(score_rows, score_rows.c.run_id == runs.c.id)
        .join(boards, boards.c.id == score_rows.c.board_id)
        .where(
            boards.c.dataset_captions == pinned.captions,
            boards.c.split == pinned.split,
            boards.c.signature == signature,
            score_rows.c.metric == PREDICTORS[0],
        )
    )
    found: dict[str, tuple[str, str]] = {}
    seen = {request.columns}
    for row, kept in _ended(connection, query, request, pinned):
        if kept.columns is not None and kept.columns not in seen:
            seen.add(kept.columns)
            found[row.id] = "columns", "columns"
    return found


def _ended(
    connection: Connection, query: sa.Select[Any], request: EvaluationRequest, pinned: PinnedSplit
) -> Iterator[tuple[Any, StoredEvaluation]]:
    """The evaluations of a split, computed as the asked one, the latest first."""
    asked = StoredEvaluation.model_validate(request.model_dump())
    ended = (
        query.where(
            runs.c.kind == evaluations.KIND.name,
            run_store.match_split(pinned),
            runs.c.status == "succeeded",
        )
        .order_by(runs.c.created_at.desc(), runs.c.id)
        .limit(_MOST)
    )
    for row in connection.execute(ended).all():
        kept = StoredEvaluation.model_validate_json(row.request)
        if asked.is_computed_as(kept):
            yield row, kept


def _scores(
    connection: Connection, identities: Iterable[str], metrics: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Scores by evaluation and metric, with the signature of the metric's latest score."""
    order = {identity: place for place, identity in enumerate(identities)}
    query = (
        sa.select(score_rows.c.run_id, score_rows.c.metric, score_rows.c.value, boards.c.signature)
        .join(boards, boards.c.id == score_rows.c.board_id)
        .where(score_rows.c.run_id.in_(list(order)), score_rows.c.metric.in_(metrics))
    )
    signatures: dict[str, str] = {}
    found: dict[str, dict[str, float | None]] = {}
    for row in sorted(connection.execute(query).all(), key=lambda row: order[row.run_id]):
        if row.signature == signatures.setdefault(row.metric, row.signature):
            found.setdefault(row.run_id, {})[row.metric] = row.value
    return found


def _labels(connection: Connection, identities: Iterable[str]) -> dict[str, dict[str, str]]:
    query = sa.select(labels).where(
        labels.c.run_id.in_(list(identities)), labels.c.name.in_(_LABELS)
    )
    found: dict[str, dict[str, str]] = {}
    for row in connection.execute(query).all():
        found.setdefault(row.run_id, {})[row.name] = row.value
    return found


def _run(usual: str, marked: Mapping[str, str]) -> str:
    """The training run of a model: its label, else what is usual."""
    for name in _LABELS:
        if name in marked:
            return f"{name}={marked[name]}"
    return usual
