"""Leaderboards and histories: one metric of all finished evaluations of a split.

A list has scores with one signature; the others are only counted, by signature.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from service.contract.api.leaderboard import Leaderboard, Scored, ScoreHistory, Standing
from service.contract.api.texts import rfc3339
from service.contract.errors import InvalidCursor, InvalidRequest
from service.contract.metrics import catalogue
from service.contract.results import EvaluationKept
from service.runs import base, search
from service.stored import datasets
from service.stored.datasets import Pinned
from service.works.parts import Parts
from service.works.tables import labels, runs, score_rows

_BOARD, _HISTORY = "leaderboard", "history"
_COLUMNS = ("evaluation", "checkpoint", "value", "low", "high", "created_at", "labels")


@dataclass(frozen=True)
class Asked:
    """A request; `signature` None: that of the latest evaluation."""

    dataset: str
    split: str | None
    metric: str
    signature: str | None
    labels: Mapping[str, str]


@dataclass(frozen=True)
class _Found:
    pinned: Pinned
    signature: str | None
    rows: Sequence[Row[Any]]  # the latest first
    others: Mapping[str, int]
    labels: Mapping[str, Mapping[str, str]]


def ranked(
    parts: Parts, asked: Asked, limit: int | None = None, cursor: str | None = None
) -> Leaderboard:
    """The leaderboard, the best first. Equal scores of the same checkpoint, or of captions, are
    listed once.
    """
    found = _find(parts, asked)
    standings = list(_standings(found, _higher_is_better(asked.metric)))
    page = _page(_BOARD, [each.evaluation for each in standings], limit, cursor)
    shown = standings[page.rows]
    return Leaderboard(**_described(found, asked), items=shown, next=page.next)


def history(
    parts: Parts, asked: Asked, limit: int | None = None, cursor: str | None = None
) -> ScoreHistory:
    """The scores of all evaluations, the latest first."""
    found = _find(parts, asked)
    page = _page(_HISTORY, [row.id for row in found.rows], limit, cursor)
    shown = [Scored(**_scored(row, found.labels)) for row in found.rows[page.rows]]
    return ScoreHistory(**_described(found, asked), items=shown, next=page.next)


def sheet(page: Leaderboard | ScoreHistory) -> Iterator[Sequence[object]]:
    """The page as rows of a table, with the columns' names first; labels are JSON."""
    ranked = isinstance(page, Leaderboard)
    yield ("rank", "tied", *_COLUMNS) if ranked else _COLUMNS
    for item in page.items:
        low, high = item.interval or (None, None)
        text = json.dumps(item.labels, ensure_ascii=False)
        place = (item.rank, item.tied) if isinstance(item, Standing) else ()
        facts = item.evaluation, item.checkpoint, item.value, low, high, item.created_at, text
        yield (*place, *facts)


def _higher_is_better(metric: str) -> bool:
    found = catalogue.metric(metric).higher_is_better
    if found is None:
        raise InvalidRequest(
            f"{metric} is neither better high nor low: nothing can be ranked by it",
            [("/query/metric", "expected a metric that has a direction")],
        )
    return found


def _find(parts: Parts, asked: Asked) -> _Found:
    pinned = datasets.pin_asked(parts.records, asked.dataset, asked.split)
    query = (
        sa.select(
            *(runs.c[name] for name in ("id", "checkpoint", "request", "created_at")),
            *(score_rows.c[name] for name in ("value", "low", "high", "signature")),
        )
        .join(score_rows, score_rows.c.run_id == runs.c.id)
        .where(
            base.on_split(pinned),
            runs.c.status != "canceled",
            score_rows.c.metric.in_(catalogue.names_of(asked.metric)),
            score_rows.c.value.is_not(None),
            *search.having(asked.labels),
        )
    )
    these = query.with_only_columns(runs.c.id)
    latest = query.order_by(runs.c.created_at.desc(), runs.c.id.desc())
    with parts.records.reading() as connection:
        found = connection.execute(latest).all()
        marked = connection.execute(sa.select(labels).where(labels.c.run_id.in_(these))).all()
    once = {row.id: row for row in found}  # a run may have a score by its name and by an alias
    whole = [
        row for row in once.values() if not EvaluationKept.model_validate_json(row.request).subset
    ]
    counts = Counter(row.signature for row in whole)
    signature = asked.signature or (whole[0].signature if whole else None)
    by_id: dict[str, dict[str, str]] = {}
    for each in marked:
        by_id.setdefault(each.run_id, {})[each.name] = each.value
    return _Found(
        pinned,
        signature,
        [row for row in whole if row.signature == signature],
        {name: many for name, many in counts.items() if name != signature},
        by_id,
    )


def _standings(found: _Found, higher: bool) -> Iterator[Standing]:  # noqa: FBT001
    """Rank rows, the best first: overlapping intervals share the rank of the best one."""
    sign = 1 if higher else -1
    once = {(row.checkpoint, row.value, row.low, row.high): row for row in found.rows}
    ordered = sorted(once.values(), key=lambda row: (-sign * row.value, row.created_at))
    ranks: list[int] = []
    leader = None
    for place, row in enumerate(ordered, 1):
        if leader is None or not _overlap(leader, row):
            leader, rank = row, place
        ranks.append(rank)
    many = Counter(ranks)
    for row, rank in zip(ordered, ranks, strict=True):
        yield Standing(rank=rank, tied=many[rank] > 1, **_scored(row, found.labels))


def _overlap(one: Row[Any], other: Row[Any]) -> bool:
    if None in (one.low, one.high, other.low, other.high):
        return bool(one.value == other.value)
    return bool(one.low <= other.high and other.low <= one.high)


def _scored(row: Row[Any], marked: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    return {
        "evaluation": row.id,
        "checkpoint": row.checkpoint,
        "value": row.value,
        "interval": None if row.low is None else (row.low, row.high),
        "labels": marked.get(row.id, {}),
        "created_at": rfc3339(row.created_at),
    }


def _described(found: _Found, asked: Asked) -> dict[str, Any]:
    return {
        "dataset": found.pinned.out,
        "metric": asked.metric,
        "higher_is_better": catalogue.metric(asked.metric).higher_is_better,
        "signature": found.signature,
        "others": found.others,
    }


@dataclass(frozen=True)
class _Page:
    rows: slice
    next: str | None


def _page(of: str, identities: Sequence[str], limit: int | None, cursor: str | None) -> _Page:
    """The page after the evaluation in the cursor; without a limit, all the rest."""
    start = 0
    if cursor is not None:
        (last,) = search.read_cursor(of, cursor, str)
        if last not in identities:
            raise InvalidCursor(f"evaluation {last!r:.60} is not in this list (any more)")
        start = identities.index(last) + 1
    stop = len(identities) if limit is None else start + limit
    more = stop < len(identities)
    return _Page(
        slice(start, stop), search.write_cursor(of, identities[stop - 1]) if more else None
    )
