"""Boards: the scores of ended evaluations by split, metric and signature, in the order of lists.

All that lists need is decided once, when an evaluation ends, so that a page of a list reads a page
of an index.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.metrics import Score
from service.contract.metrics import catalogue
from service.contract.results import StoredEvaluation, TaskRow
from service.engine import summaries
from service.engine.tables import boards, runs, score_rows
from service.runs import verdicts

_ALIKE = ("board_id", "value", "low", "high")
_SCORED = "evaluation"  # the kind of run whose scores are searched by metric
_SPLIT = ("team", "dataset_name", "dataset_captions", "split")
_RUN = ("id", "kind", "request", *_SPLIT, "checkpoint", "status", "created_at")


def enter_scores(connection: Connection, identity: str, rows: Sequence[TaskRow]) -> frozenset[str]:
    """Enter the scores that an ended evaluation shows, and note whether it may be a baseline and
    whether it has collapsed; returns the full names of its metrics.
    """
    own = sa.select(*(runs.c[name] for name in _RUN)).where(runs.c.id == identity)
    run = connection.execute(own).one()
    if run.kind != _SCORED:
        return frozenset()
    request = StoredEvaluation.model_validate_json(run.request)
    repeated = verdicts.find_repeated_caption(verdicts.read_decoded(rows), request)
    noted = {
        "may_be_baseline": verdicts.may_be_baseline(run.status, rows, request),
        "collapsed": repeated is not None,
    }
    if any(noted.values()):
        connection.execute(runs.update().where(runs.c.id == identity).values(**noted))
    shown = verdicts.select_shown_scores(rows, request)
    known = {} if request.subset else summaries.find_draws(connection, [row["key"] for row in rows])
    enter_shown_scores(connection, run, shown, is_partial=request.subset, draws=known)
    return frozenset(catalogue.find_metric(name).name for name in shown)


def enter_shown_scores(
    connection: Connection,
    run: Any,
    shown: Mapping[str, Score],
    *,
    is_partial: bool,
    draws: Mapping[str, int] | None = None,
) -> None:
    """Enter scores by name; `run` is a row of `runs`, `draws` are ids by metrics' full names."""
    if not shown:
        return
    full = {name: catalogue.find_metric(name).name for name in shown}
    places = _boards(connection, run, {(full[name], shown[name].signature) for name in shown})
    kept = []
    listed: set[str] = set()
    for name, score in shown.items():
        row = _row(run, name, score, places[full[name], score.signature])
        row["draws_id"] = (draws or {}).get(full[name])
        whole = not is_partial and run.status != "canceled" and full[name] not in listed
        if whole and score.value is not None:
            listed.add(full[name])
            row |= {"listed": True, "same": _same(run.checkpoint, row)}
        kept.append(row)
    _mark_first(connection, run, [row for row in kept if row["listed"]])
    connection.execute(score_rows.insert(), kept)
    these = [row["board_id"] for row in kept if row["listed"]]
    if these:
        more = boards.update().where(boards.c.id.in_(these))
        connection.execute(more.values(listed=boards.c.listed + 1))


def remove_scores(connection: Connection, identity: str) -> None:
    """Take the scores of an evaluation from their boards. Where one was first of equal scores, the
    next one is; a board without scores is deleted.
    """
    own = score_rows.c.run_id == identity
    checkpoint = sa.select(runs.c.checkpoint).where(runs.c.id == identity).scalar_subquery()
    query = sa.select(score_rows, checkpoint.label("checkpoint")).where(own)
    gone = connection.execute(query).all()
    connection.execute(score_rows.delete().where(own))
    for row in gone:
        if row.first:
            _mark_next(connection, row)
    listed = [row.board_id for row in gone if row.listed]
    fewer = boards.update().where(boards.c.id.in_(listed))
    connection.execute(fewer.values(listed=boards.c.listed - 1))
    scored = sa.exists().where(score_rows.c.board_id == boards.c.id)
    left = boards.c.id.in_({row.board_id for row in gone}), ~scored
    connection.execute(boards.delete().where(*left))


def _mark_next(connection: Connection, gone: Any) -> None:
    """Mark as first the first submitted of the equal scores of its checkpoint that remain."""
    alike = (
        sa.select(score_rows, runs.c.checkpoint)
        .join(runs, runs.c.id == score_rows.c.run_id)
        .where(score_rows.c.same == gone.same, score_rows.c.listed)
        .order_by(score_rows.c.created_at, score_rows.c.run_id)
    )
    facts = _facts(dict(gone._mapping), gone.checkpoint)  # noqa: SLF001
    for row in connection.execute(alike):
        if _facts(dict(row._mapping), row.checkpoint) == facts:  # noqa: SLF001
            key = score_rows.c.run_id == row.run_id, score_rows.c.metric == row.metric
            connection.execute(score_rows.update().where(*key).values(first=True))
            return


def _boards(
    connection: Connection, run: Any, wanted: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], int]:
    """The ids of boards by metric and signature; those that are missing are made."""
    split = {name: getattr(run, name) for name in _SPLIT}
    query = sa.select(boards).where(
        *(boards.c[name] == at for name, at in split.items()),
        boards.c.metric.in_({metric for metric, _ in wanted}),
    )
    found = {(row.metric, row.signature): row.id for row in connection.execute(query)}
    for metric, signature in wanted:
        if (metric, signature) not in found:
            made = boards.insert().values(**split, metric=metric, signature=signature, listed=0)
            new = connection.execute(made.returning(boards.c.id)).scalar_one()
            found[metric, signature] = new
    return found


def _row(run: Any, name: str, score: Score, board: int) -> dict[str, Any]:
    low, high = score.interval or (None, None)
    return {
        "run_id": run.id,
        "metric": name,
        "board_id": board,
        "value": score.value,
        "low": low,
        "high": high,
        "place": _place(name, score.value),
        "listed": False,
        "first": False,
        "same": None,
        "created_at": run.created_at,
    }


def _place(metric: str, value: float | None) -> float | None:
    if value is None:
        return None
    return -value if catalogue.find_metric(metric).higher_is_better else value


def _same(checkpoint: str | None, row: Mapping[str, Any]) -> int:
    """A number that is the same for equal scores of one checkpoint on a board."""
    equal = [at if at is None else at + 0 for at in map(row.get, _ALIKE)]  # -0.0 equals 0.0
    digest = hashlib.sha256(repr((checkpoint, equal)).encode()).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def _mark_first(connection: Connection, run: Any, rows: Sequence[dict[str, Any]]) -> None:
    """Mark as first, among equal scores of a checkpoint on a board, that of the evaluation that was
    submitted first; it may end after another.
    """
    if not rows:
        return
    alike = (
        sa.select(score_rows, runs.c.checkpoint)
        .join(runs, runs.c.id == score_rows.c.run_id)
        .where(score_rows.c.same.in_([row["same"] for row in rows]), score_rows.c.first)
    )
    others = {
        _facts(dict(other._mapping), other.checkpoint): other  # noqa: SLF001
        for other in connection.execute(alike)
    }
    for row in rows:
        other = others.get(_facts(row, run.checkpoint))
        row["first"] = other is None or (run.created_at, run.id) < (other.created_at, other.run_id)
        if other is not None and row["first"]:
            key = score_rows.c.run_id == other.run_id, score_rows.c.metric == other.metric
            connection.execute(score_rows.update().where(*key).values(first=False))


def _facts(row: Mapping[str, Any], checkpoint: str | None) -> tuple[Any, ...]:
    return checkpoint, *(row[name] for name in _ALIKE)
