"""Boards of a split: one found by metric and signature, other metrics beside it, empty ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.leaderboard import ScoreBeside
from service.contract import wording
from service.contract.metrics import catalogue
from service.engine.records import in_batches
from service.engine.tables import boards, labels, runs, score_rows
from service.runs import run_lists, run_store
from service.stored.datasets import PinnedSplit


@dataclass(frozen=True)
class BoardQuery:
    """A request; `signature` None: that of the latest evaluation."""

    dataset: str
    split: str | None
    metric: str
    signature: str | None
    labels: Mapping[str, str]
    beside: Sequence[str] = ()  # other metrics of the same evaluations
    order: str = "rank"  # of a leaderboard's rows: rank, newest, oldest or name


@dataclass(frozen=True)
class BoardMatch:
    """The board of the asked signature, if there is one; `others`: counts of the other ones."""

    pinned: PinnedSplit
    board: int | None
    signature: str | None
    others: Mapping[str, int]


def is_on_board(found: BoardMatch, *, by_board: bool) -> sa.ColumnElement[bool]:
    """The condition for scores of a board. Not `by_board`: they are found by another index than the
    board's, of a condition that leaves few.
    """
    board = score_rows.c.board_id
    return (board if by_board else board + 0) == found.board


def find_board(connection: Connection, pinned: PinnedSplit, asked: BoardQuery) -> BoardMatch:
    metric = catalogue.find_metric(asked.metric).name
    these = run_store.match_split(pinned, boards), boards.c.metric == metric
    query = _counts(connection, asked) if asked.labels else _COUNTS
    rows = connection.execute(query.where(*these)).all()
    latest = sorted((row for row in rows if row.many), key=lambda row: row.latest, reverse=True)
    signature = asked.signature or (latest[0].signature if latest else None)
    board = next((row.id for row in latest if row.signature == signature), None)
    others = {row.signature: row.many for row in latest if row.signature != signature}
    return BoardMatch(pinned, board, signature, others)


_COUNTS = sa.select(
    boards.c.id,
    boards.c.signature,
    boards.c.listed.label("many"),
    sa.select(sa.func.max(score_rows.c.created_at))
    .where(score_rows.c.board_id == boards.c.id, score_rows.c.listed)
    .scalar_subquery()
    .label("latest"),
)


def _counts(connection: Connection, asked: BoardQuery) -> sa.Select[Any]:
    """Count the scores of each board, like _COUNTS, but only scores with these labels."""
    return (
        sa.select(
            boards.c.id,
            boards.c.signature,
            sa.func.count().label("many"),
            sa.func.max(score_rows.c.created_at).label("latest"),
        )
        .select_from(labels)
        .join(score_rows, score_rows.c.run_id == labels.c.run_id)
        .join(boards, boards.c.id == score_rows.c.board_id)
        .where(
            score_rows.c.metric.in_(catalogue.list_metric_names(asked.metric)),
            score_rows.c.listed,
            *run_lists.filter_labels(connection, asked.labels),
        )
        .group_by(boards.c.id, boards.c.signature)
    )


_SHOWN = tuple(score_rows.c[name] for name in ("run_id", "value", "low", "high"))


@dataclass(frozen=True)
class BoardScores:
    """A metric's scores with one signature, by evaluation."""

    metric: str
    signature: str | None
    scores: Mapping[str, ScoreBeside]


def find_boards_beside(
    connection: Connection, pinned: PinnedSplit, asked: BoardQuery
) -> dict[str, BoardMatch]:
    """The boards of the other metrics, by name."""
    return {
        metric: find_board(connection, pinned, replace(asked, metric=metric, signature=None))
        for metric in asked.beside
    }


def find_scores_beside(
    connection: Connection,
    found: BoardMatch,
    metric: str,
    checkpoints: Mapping[str, str | None],
) -> BoardScores:
    """The metric of these evaluations, whose checkpoints are given: of the evaluation itself, or of
    another one of the same checkpoint. `found`: the metric's board.
    """
    if found.board is None:
        return BoardScores(metric, found.signature, {})
    on_board = is_on_board(found, by_board=False), score_rows.c.listed
    own = sa.select(*_SHOWN).where(
        *on_board, score_rows.c.metric.in_(catalogue.list_metric_names(metric))
    )
    again = sa.select(runs.c.checkpoint, *_SHOWN).join(runs, runs.c.id == score_rows.c.run_id)
    scores: dict[str, ScoreBeside] = {}
    for some in in_batches(checkpoints):
        for row in connection.execute(own.where(score_rows.c.run_id.in_(some))):
            scores[row.run_id] = _score(row)
        wanted = {at for one in some if one not in scores and (at := checkpoints[one])}
        if not wanted:
            continue
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
    return BoardScores(metric, found.signature, scores)


def find_first_beside(
    connection: Connection, found: BoardMatch, metric: str, ranked: sa.Select[Any]
) -> str | None:
    """The evaluation, of those that are `ranked`, with the best score by another metric, whose
    board is `found`; of equal ones the first submitted. Scores are looked through from the best on,
    a batch at a time; equal ones of a checkpoint, or of captions, at once.
    """
    if found.board is None:
        return None
    query = (
        sa.select(score_rows.c.place, score_rows.c.same, runs.c.checkpoint)
        .join(runs, runs.c.id == score_rows.c.run_id)
        .where(is_on_board(found, by_board=True), score_rows.c.first)
        .order_by(score_rows.c.place, score_rows.c.created_at, score_rows.c.run_id)
        .execution_options(yield_per=_LOOKED_AT)
    )
    rows = ranked.subquery()
    own = sa.select(rows.c.run_id, rows.c.created_at, runs.c.checkpoint)
    own = own.join(runs, runs.c.id == rows.c.run_id)
    sign, best = catalogue.find_metric(metric).sign, None
    with connection.execute(query) as result:
        for some in result.partitions():
            checkpoints = {row.checkpoint for row in some if row.checkpoint is not None}
            alike = score_rows.c.same.in_([row.same for row in some])
            near = (
                sa.select(score_rows.c.run_id).where(alike),
                sa.select(runs.c.id).where(runs.c.checkpoint.in_(checkpoints)),
            )
            candidates = {
                row.run_id: row
                for these in near
                for row in connection.execute(own.where(rows.c.run_id.in_(these)))
            }
            of = {identity: row.checkpoint for identity, row in candidates.items()}
            scores = find_scores_beside(connection, found, metric, of).scores
            places = [
                (-sign * score.value, candidates[identity].created_at, identity)
                for identity, score in scores.items()
            ]
            best = min(places if best is None else [best, *places], default=None)
            if best is not None and best[0] <= some[-1].place:
                break
    return None if best is None else best[2]


def _score(row: Any) -> ScoreBeside:
    interval = None if row.low is None else (row.low, row.high)
    return ScoreBeside(evaluation=row.run_id, value=row.value, interval=interval)


_LOOKED_AT = 200  # scores of a batch
_MOST_NAMED = 5


def explain_empty_board(connection: Connection, found: BoardMatch, asked: BoardQuery) -> str | None:
    """One sentence; None where the board has scores."""
    if found.board is not None:
        return None
    on_split = run_store.match_split(found.pinned, boards), boards.c.listed > 0
    own = boards.c.metric == catalogue.find_metric(asked.metric).name
    listed = connection.execute(sa.select(boards.c.id).where(*on_split, own)).scalars().all()
    if found.others:
        return f"no score of {asked.metric} has this signature; `others` has those that there are"
    if listed and asked.labels:
        return _unlabelled(asked.labels, _labels(connection, listed))
    if listed:
        return f"no score of {asked.metric} has this signature"
    many = sa.func.sum(boards.c.listed).desc(), boards.c.metric
    query = sa.select(boards.c.metric).where(*on_split).group_by(boards.c.metric).order_by(*many)
    metrics = connection.execute(query).scalars().all()
    if shown := [catalogue.find_shown_name(name) for name in metrics]:
        return f"no evaluation of the whole split has {asked.metric} yet; there are {_few(shown)}"
    return "no evaluation of the whole split has scores yet; POST /v1/evaluations begins one"


def _labels(connection: Connection, listed: Sequence[int]) -> list[str]:
    """Labels of evaluations on these boards, the latest first."""
    rows = score_rows.c
    query = sa.select(rows.run_id, rows.created_at).where(rows.board_id.in_(listed), rows.listed)
    return run_lists.find_latest_labels(connection, query)


def _unlabelled(wanted: Mapping[str, str], known: Sequence[str]) -> str:
    asked = [run_lists.quote_label(f"{name}={value}") for name, value in wanted.items()]
    near_ones = (wording.suggest_labels(one, known) for one in asked if one not in known)
    instead = f"; the latest labels are {_few(known)}" if known else "; no score has a label"
    question = next(filter(None, near_ones), instead)
    return f"no score has the label{'s' * (len(asked) > 1)} {' and '.join(asked)}{question}"


def _few(names: Sequence[str]) -> str:
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return ", ".join([*names[:_MOST_NAMED], *more])
