"""Leaderboards and histories: one metric of all finished evaluations of a split.

A list has scores with one signature; the others are only counted, by signature.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.identifiers import rfc3339
from prescore.models.leaderboard import BoardReferences, Leaderboard, Scored, ScoreHistory, Standing
from service.contract.api.field_types import moment
from service.contract.errors import InvalidCursor, InvalidRequest
from service.contract.metrics import catalogue
from service.engine.records import in_batches
from service.engine.service_parts import ServiceParts
from service.engine.tables import labels, runs, score_rows
from service.runs import probes, ranking, run_lists, run_store, score_boards
from service.runs.score_boards import BoardMatch, BoardQuery, BoardScores, find_board
from service.stored import datasets

_BOARD, _HISTORY = "leaderboard", "history"
_SHOWN = ("run_id", "value", "low", "high", "place", "created_at", "draws_id", "same")
_ORDER = ("place", "created_at", "run_id")
_STEP = re.compile(r"[0-9]+(\.[0-9]+)?$")  # at the end of a label
_AGAINST_FIRST = (
    *("tied_with_first", "difference_from_first", "difference_low", "difference_high"),
    "p_against_first",
)
_COMMIT = 7  # digits of a commit that are shown
_COLUMNS = ("evaluation", "checkpoint", "value", "low", "high", "created_at", "labels")
_MOST_EQUAL = 20  # evaluations named beside a row that they share


def build_leaderboard(
    parts: ServiceParts, asked: BoardQuery, limit: int | None = None, cursor: str | None = None
) -> Leaderboard:
    """The leaderboard, the best first unless another order is asked for. Equal scores of the same
    checkpoint, or of captions, are listed once.
    """
    check_direction(asked.metric)
    pinned = datasets.pin_usual_split(parts.records, asked.dataset, asked.split)
    with parts.records.reading() as connection:
        found = find_board(connection, pinned, asked)
        beside = score_boards.find_boards_beside(connection, pinned, asked)
        page = _read_page(connection, found, asked, limit, cursor)
        facts = _facts(connection, found, asked, beside, page.rows)
        equal = _find_equal(connection, found, asked, page.rows)
        first = next(iter(_best(connection, found, asked, 0, None)), None)
        firsts: dict[str, str] = {}
        if first is not None and cursor is None:
            firsts = _find_firsts(connection, found, asked, beside, first.run_id)
        references = _find_references(connection, found, asked)
    return Leaderboard(
        **_described(found, asked, facts),
        **references,
        items=[] if first is None else _standings(page, first, asked, facts, equal),
        next=page.following,
        firsts=firsts,
        detectable=None
        if first is None
        else ranking.compute_detectable(first, page.rows, page.known),
    )


def build_leaderboard_table(parts: ServiceParts, asked: BoardQuery) -> list[Sequence[object]]:
    """The whole leaderboard as rows of a table: ranks, names, scores and the tests against the
    first, without what else a page has.
    """
    check_direction(asked.metric)
    pinned = datasets.pin_usual_split(parts.records, asked.dataset, asked.split)
    with parts.records.reading() as connection:
        found = find_board(connection, pinned, asked)
        beside = score_boards.find_boards_beside(connection, pinned, asked)
        page = _read_page(connection, found, asked)
        facts = _facts(connection, found, asked, beside, page.rows)
        equal = _find_equal(connection, found, asked, page.rows)
        first = next(iter(_best(connection, found, asked, 0, None)), None)
    standings = [] if first is None else _standings(page, first, asked, facts, equal)
    board = str(pinned.out), asked.metric
    heads = [
        ("dataset", "metric", "rank", "tied", "equal", "name"),
        *((*board, *_tabulate_head(each)) for each in standings),
    ]
    tests = [_AGAINST_FIRST, *map(_tabulate_test, standings)]
    scores = _tabulate(standings, asked.beside)
    return [(*head, *row, *test) for head, row, test in zip(heads, scores, tests, strict=True)]


def _tabulate_head(standing: Standing) -> tuple[object, ...]:
    name = _name_evaluation(standing.evaluation, standing.labels)
    return standing.rank, standing.tied, standing.equal, name


def _tabulate_test(standing: Standing) -> tuple[object, ...]:
    """The cells of _AGAINST_FIRST; the first itself is tested against none."""
    test = standing.against_first
    if test is None:
        return standing.tied_with_first, None, None, None, None
    return standing.tied_with_first, test.difference, *test.interval, test.p


@dataclass(frozen=True)
class _BoardPage:
    """Rows of a page, with `rank`, `tied` and `ranked_by` of each."""

    rows: Sequence[Row[Any]]
    ranks: Sequence[Mapping[str, Any]]
    known: ranking.KnownDraws
    following: str | None  # cursor


def _read_page(
    connection: Connection,
    found: BoardMatch,
    asked: BoardQuery,
    limit: int | None = None,
    cursor: str | None = None,
) -> _BoardPage:
    if asked.order != "rank":
        return _read_ordered_page(connection, found, asked, limit, cursor)
    last = _last(connection, found, asked, _BOARD, cursor)
    above = [] if last is None else _above(connection, found, asked, last)
    rows = _best(connection, found, asked, limit, last)
    shown = rows[:limit]
    known = ranking.read_draws(connection, [*above, *rows])
    ranks = ranking.rank_rows([*above, *rows], known)[len(above) :]
    following = run_lists.write_cursor(_BOARD, shown[-1].run_id) if len(rows) > len(shown) else None
    return _BoardPage(shown, ranks[: len(shown)], known, following)


def _read_ordered_page(
    connection: Connection,
    found: BoardMatch,
    asked: BoardQuery,
    limit: int | None,
    cursor: str | None,
) -> _BoardPage:
    """A page of another order than by rank: all rows are ranked, then sorted."""
    of = f"{_BOARD}, {asked.order}"
    rows = _best(connection, found, asked, None, None)
    known = ranking.read_draws(connection, rows)
    ranks = ranking.rank_rows(rows, known)
    places = _order_rows(connection, rows, asked.order)
    start = 0
    if cursor is not None:
        (identity,) = run_lists.read_cursor(of, cursor, str)
        start = 1 + next(
            (at for at, place in enumerate(places) if rows[place].run_id == identity), -1
        )
        if start == 0:
            raise _removed_error(identity)
    shown = places[start:][:limit]
    more = start + len(shown) < len(places)
    following = run_lists.write_cursor(of, rows[shown[-1]].run_id) if more else None
    return _BoardPage([rows[at] for at in shown], [ranks[at] for at in shown], known, following)


def _order_rows(connection: Connection, rows: Sequence[Row[Any]], order: str) -> list[int]:
    """Places of the rows by time of submission, or by names of their evaluations."""
    if order == "name":
        marked = run_store.read_labels(connection, [row.run_id for row in rows])
        names = [_sort_by_name(row.run_id, marked[row.run_id]) for row in rows]
        return sorted(range(len(rows)), key=names.__getitem__)
    times = [(row.created_at, row.run_id) for row in rows]
    return sorted(range(len(rows)), key=times.__getitem__, reverse=order == "newest")


def _sort_by_name(identity: str, marks: Mapping[str, str]) -> tuple[str, float, str]:
    """The name that pages show, of a run without its step, and the step, to sort by."""
    step = _find_step(marks)
    name = marks.get("run") or _name_evaluation(identity, marks)
    return name.casefold(), -1.0 if step is None else step, identity


def _find_step(marks: Mapping[str, str]) -> float | None:
    """The number that ends the label `step`, or else `epoch`, of a checkpoint of a run."""
    step = _STEP.search(marks.get("step", marks.get("epoch", ""))) if marks.get("run") else None
    return None if step is None else float(step[0])


def _name_evaluation(identity: str, marks: Mapping[str, str]) -> str:
    """The name that pages show, as "warm, step 1,200"; the id where no label names it."""
    if run := marks.get("run"):
        step = _find_step(marks)
        return run if step is None else f"{run}, step {f'{step:,.3f}'.rstrip('0').rstrip('.')}"
    if name := marks.get("name") or marks.get("file"):
        return name
    branch, commit = marks.get("branch", ""), marks.get("commit", "")[:_COMMIT]
    return ", ".join(filter(None, [branch, branch and commit])) or identity


def _standings(
    page: _BoardPage,
    first: Row[Any],
    asked: BoardQuery,
    facts: "_EvaluationFacts",
    equal: Mapping[int, "_EqualScores"],
) -> list[Standing]:
    sign = catalogue.find_metric(asked.metric).sign
    return [
        Standing(
            **rank,
            **_scored(row, facts),
            is_collapsed=row.run_id in facts.collapsed,
            tied_with_first=ranking.is_tied_with_first(first, row, page.known),
            against_first=ranking.compare_with_first(first, row, page.known, sign),
            equal=equal[row.same].many,
            equal_ones=equal[row.same].named,
        )
        for row, rank in zip(page.rows, page.ranks, strict=True)
    ]


@dataclass(frozen=True)
class _EqualScores:
    """Evaluations that share a row with the one that is listed, the first submitted first."""

    many: int
    named: list[str]  # ids


def _find_equal(
    connection: Connection, found: BoardMatch, asked: BoardQuery, rows: Iterable[Row[Any]]
) -> dict[int, _EqualScores]:
    """The others with the score of each row, by its `same`."""
    equal = {row.same: _EqualScores(0, []) for row in rows}
    age = score_rows.c.created_at, score_rows.c.run_id
    for these in in_batches(equal):
        alike = (
            _listed(connection, found, asked, by_board=False)
            .where(score_rows.c.same.in_(these))
            .add_columns(
                sa.func.row_number().over(partition_by=score_rows.c.same, order_by=age).label("at"),
                sa.func.count().over(partition_by=score_rows.c.same).label("many"),
            )
            .subquery()
        )
        others = sa.select(alike).where(alike.c.at.between(2, _MOST_EQUAL + 1))
        for row in connection.execute(others.order_by(alike.c.same, alike.c.at)):
            named = [*equal[row.same].named, row.run_id]
            equal[row.same] = _EqualScores(row.many - 1, named)
    return equal


def _find_firsts(
    connection: Connection,
    found: BoardMatch,
    asked: BoardQuery,
    beside: Mapping[str, BoardMatch],
    first: str,
) -> dict[str, str]:
    """The best evaluation of the board by each metric that has a direction; `first`: by its own."""
    ranked, _ = _firsts(connection, found, asked, by_board=False)
    others = {
        name: score_boards.find_first_beside(connection, other, name, ranked)
        for name, other in beside.items()
        if catalogue.find_metric(name).sign
    }
    return {asked.metric: first, **{name: one for name, one in others.items() if one}}


def _find_references(
    connection: Connection, found: BoardMatch, asked: BoardQuery
) -> dict[str, Any]:
    """Scores of people's captions and of one sentence for all images, and that sentence."""
    health, caption = probes.find_references(connection, found.pinned)
    known = {catalogue.find_metric(name).name: each for name, each in (health or {}).items()}
    shown = {
        name: known[full]
        for name in (asked.metric, *asked.beside)
        if (full := catalogue.find_metric(name).name) in known
    }
    human = {name: each.human for name, each in shown.items() if each.human is not None}
    constant = {name: each.constant for name, each in shown.items() if each.constant is not None}
    return {
        "references": BoardReferences(human=human, constant=constant),
        "constant_caption": caption,
    }


def build_history(
    parts: ServiceParts, asked: BoardQuery, limit: int | None = None, cursor: str | None = None
) -> ScoreHistory:
    """The scores of all evaluations, the latest first."""
    pinned = datasets.pin_usual_split(parts.records, asked.dataset, asked.split)
    with parts.records.reading() as connection:
        found = find_board(connection, pinned, asked)
        last = _last(connection, found, asked, _HISTORY, cursor)
        rows = _latest(connection, found, asked, limit, last)
        shown = rows[:limit]
        beside = score_boards.find_boards_beside(connection, pinned, asked)
        facts = _facts(connection, found, asked, beside, shown)
    following = (
        run_lists.write_cursor(_HISTORY, shown[-1].run_id) if len(rows) > len(shown) else None
    )
    items = [Scored(**_scored(row, facts)) for row in shown]
    return ScoreHistory(**_described(found, asked, facts), items=items, next=following)


def build_history_table(parts: ServiceParts, asked: BoardQuery) -> Iterator[Sequence[object]]:
    """The whole history as rows of a table."""
    return _tabulate(build_history(parts, asked).items, asked.beside)


def _tabulate(items: Iterable[Scored], beside: Sequence[str]) -> Iterator[Sequence[object]]:
    """Scores as rows of a table, with the columns' names first; labels are JSON."""
    yield (*_COLUMNS, *beside)
    for item in items:
        low, high = item.interval or (None, None)
        text = json.dumps(item.labels, ensure_ascii=False)
        made = item.created_at and rfc3339(item.created_at)
        facts = item.evaluation, item.checkpoint, item.value, low, high, made, text
        beside_it = (item.scores.get(name) for name in beside)
        yield (*facts, *(None if one is None else one.value for one in beside_it))


def check_direction(metric: str, parameter: str = "metric") -> None:
    """Raise InvalidRequest for a metric that is neither better high nor low."""
    if catalogue.find_metric(metric).higher_is_better is None:
        raise InvalidRequest(
            f"{metric} is neither better high nor low: nothing can be ranked by it",
            [(f"/query/{parameter}", "expected a metric that has a direction")],
        )


def _listed(
    connection: Connection, found: BoardMatch, asked: BoardQuery, *, by_board: bool = True
) -> sa.Select[Any]:
    """The board's scores that are listed; `by_board` as of `score_boards.is_on_board`."""
    query = sa.select(*(score_rows.c[name] for name in _SHOWN))
    query = query.where(score_boards.is_on_board(found, by_board=by_board), score_rows.c.listed)
    if not asked.labels:
        return query
    return query.join(labels, labels.c.run_id == score_rows.c.run_id).where(
        score_rows.c.metric.in_(catalogue.list_metric_names(asked.metric)),
        *run_lists.filter_labels(connection, asked.labels),
    )


def _firsts(
    connection: Connection, found: BoardMatch, asked: BoardQuery, *, by_board: bool = True
) -> tuple[sa.Select[Any], Any]:
    """The rows of a leaderboard, of equal scores of a checkpoint only the first; its columns."""
    if not asked.labels:
        columns = score_rows.c
        on_board = score_boards.is_on_board(found, by_board=by_board), columns.first
        return sa.select(*(columns[name] for name in _SHOWN)).where(*on_board), columns
    age = score_rows.c.created_at, score_rows.c.run_id
    again = sa.func.row_number().over(partition_by=score_rows.c.same, order_by=age)
    rows = _listed(connection, found, asked).add_columns(again.label("again")).subquery()
    return sa.select(*(rows.c[name] for name in _SHOWN)).where(rows.c.again == 1), rows.c


def _best(
    connection: Connection,
    found: BoardMatch,
    asked: BoardQuery,
    limit: int | None,
    after: Row[Any] | None,
) -> Sequence[Row[Any]]:
    """A page's rows, and one more if there is one."""
    if found.board is None:
        return []
    query, columns = _firsts(connection, found, asked)
    order = [columns[name] for name in _ORDER]
    if after is not None:
        query = query.where(sa.tuple_(*order) > sa.tuple_(*_position(after, _ORDER)))
    return connection.execute(_limited(query.order_by(*order), limit)).all()


def _above(
    connection: Connection, found: BoardMatch, asked: BoardQuery, last: Row[Any]
) -> Sequence[Row[Any]]:
    """Read the columns that ranks are made of, of all rows up to this one: an index has them."""
    query, columns = _firsts(connection, found, asked)
    order = [columns[name] for name in _ORDER]
    upto = query.where(sa.tuple_(*order) <= sa.tuple_(*_position(last, _ORDER)))
    only = upto.with_only_columns(*(columns[name] for name in ("place", "low", "high", "draws_id")))
    return connection.execute(only.order_by(*order)).all()


def _position(row: Row[Any], names: Iterable[str]) -> list[Any]:
    return [getattr(row, name) for name in names]


def _latest(
    connection: Connection,
    found: BoardMatch,
    asked: BoardQuery,
    limit: int | None,
    after: Row[Any] | None,
) -> Sequence[Row[Any]]:
    if found.board is None:
        return []
    source = labels if asked.labels else score_rows  # an index of either has this order
    order = source.c.created_at, source.c.run_id
    query = _listed(connection, found, asked)
    if after is not None:
        position = after.created_at, after.run_id
        query = query.where(sa.tuple_(*order) < sa.tuple_(*position))
    latest = query.order_by(*(column.desc() for column in order))
    return connection.execute(_limited(latest, limit)).all()


def _limited(query: sa.Select[Any], limit: int | None) -> sa.Select[Any]:
    return query if limit is None else query.limit(limit + 1)


def _last(
    connection: Connection, found: BoardMatch, asked: BoardQuery, of: str, cursor: str | None
) -> Row[Any] | None:
    """The row in a cursor, after which a page begins."""
    if cursor is None:
        return None
    (identity,) = run_lists.read_cursor(of, cursor, str)
    own = _listed(connection, found, asked).where(score_rows.c.run_id == identity)
    row = None if found.board is None else connection.execute(own).first()
    if row is None:
        raise _removed_error(identity)
    return row


def _removed_error(identity: str) -> InvalidCursor:
    return InvalidCursor(f"evaluation {identity!r:.60} is not in this list (any more)")


@dataclass(frozen=True)
class _EvaluationFacts:
    """Facts beside scores: of their evaluations, by id; and the reason why there are no scores."""

    checkpoints: Mapping[str, str | None]
    collapsed: Collection[str]
    labels: Mapping[str, Mapping[str, str]]
    others: Sequence[BoardScores]  # metrics
    none_because: str | None


def _facts(
    connection: Connection,
    found: BoardMatch,
    asked: BoardQuery,
    beside: Mapping[str, BoardMatch],
    rows: Iterable[Row[Any]],
) -> _EvaluationFacts:
    identities = [row.run_id for row in rows]
    checkpoints: dict[str, str | None] = {}
    collapsed: set[str] = set()
    for these in in_batches(identities):
        own = sa.select(runs.c.id, runs.c.checkpoint, runs.c.collapsed).where(runs.c.id.in_(these))
        for row in connection.execute(own):
            checkpoints[row.id] = row.checkpoint
            if row.collapsed:
                collapsed.add(row.id)
    marked = run_store.read_labels(connection, identities)
    others = [
        score_boards.find_scores_beside(connection, other, name, checkpoints)
        for name, other in beside.items()
    ]
    reason = score_boards.explain_empty_board(connection, found, asked)
    return _EvaluationFacts(checkpoints, collapsed, marked, others, reason)


def _scored(row: Row[Any], facts: _EvaluationFacts) -> dict[str, Any]:
    return {
        "evaluation": row.run_id,
        "checkpoint": facts.checkpoints[row.run_id],
        "value": row.value,
        "interval": None if row.low is None else (row.low, row.high),
        "labels": facts.labels[row.run_id],
        "scores": {
            each.metric: each.scores[row.run_id]
            for each in facts.others
            if row.run_id in each.scores
        },
        "created_at": moment(row.created_at),
    }


def _described(found: BoardMatch, asked: BoardQuery, facts: _EvaluationFacts) -> dict[str, Any]:
    return {
        "dataset": found.pinned.out,
        "metric": asked.metric,
        "higher_is_better": catalogue.find_metric(asked.metric).higher_is_better,
        "signature": found.signature,
        "others": found.others,
        "beside": {each.metric: each.signature for each in facts.others},
        "none_because": facts.none_because,
    }
