"""A record filled fast: evaluations that the service made, copied with other ids, scores and times.

A copy has tasks, attempts, events, labels and scores of its own, as an evaluation of another
checkpoint has; tasks that read no checkpoint are shared. Its scores come to their boards by the
service's own rules. The files that tasks wrote are not copied.
"""

import base64
import hashlib
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import sqlalchemy as sa

from prescore.models.metrics import Score
from service.contract import results
from service.contract.metrics import catalogue
from service.contract.metrics import draws as packing
from service.engine import summaries
from service.engine import summaries as drawn
from service.engine.records import Records
from service.engine.tables import (
    attempts,
    checkpoints,
    draws,
    labels,
    run_tasks,
    runs,
    score_rows,
    task_rows,
)
from service.runs import board_entries

_NUMBER = re.compile(r"-?\d+\.\d{6,}(?:e-?\d+)?")
_SHARED = ("references", "training")
_BATCH = 100
_SPREAD = 0.2  # of a score, between copies
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class _Template:
    """An evaluation's rows by table; `ids` are what a copy has others of."""

    run: dict[str, Any]
    rows: Mapping[sa.Table, Rows]
    texts: Mapping[int, str]  # of long summaries
    scores: Mapping[str, Score]
    drawn: Mapping[str, Mapping[str, bytes]]  # by task and metric
    ids: tuple[str, ...]


def fill(records: Records, many: int, start: int = 0) -> None:
    """Copy the evaluations that are there, in turn, until there are `many` copies; `start` of them
    are there already.
    """
    templates = list(_templates(records, start))
    for first in range(start, many, _BATCH):
        with records.transaction() as connection:
            for number in range(first, min(many, first + _BATCH)):
                _copy(connection, templates[number % len(templates)], number)
    if records.engine.dialect.name == "postgresql":
        with records.transaction() as connection:
            connection.execute(sa.text("ANALYZE"))


# How a copy differs, by table and column; other columns are equal. {n}: its number, from 1001.
# {at}: the place of the number in 64 hex digits.
_ID, _LATER = "{column} || CAST({at} * 10000 + {n} AS TEXT)", "{column} + 1000 * {n}"
_KEY = "substr({column}, 1, {at} - 1) || CAST({n} AS TEXT) || substr({column}, {at} + 4)"
_DIGEST = "substr({column}, 1, {at} + 6) || CAST({n} AS TEXT) || substr({column}, {at} + 11)"
_COPIED: Mapping[sa.Table, Mapping[str, str]] = {
    runs: {"id": _ID, "checkpoint": _DIGEST, "created_at": _LATER, "finished_at": _LATER},
    task_rows: {"key": _KEY, "created_at": _LATER},
    run_tasks: {"run_id": _ID, "task_key": _KEY},
    labels: {"run_id": _ID, "created_at": _LATER},
    checkpoints: {"digest": _DIGEST, "created_at": _LATER},
    score_rows: {
        "run_id": _ID,
        "value": "{column} + 0.000001 * {n}",
        "place": "{column} + 0.000001 * {n}",
        "same": "{column} + {n}",
        "created_at": _LATER,
    },
}


_ENDED = "t.run_id IN (SELECT id FROM runs WHERE finished_at IS NOT NULL)"
_WHERE = {
    runs: "t.finished_at IS NOT NULL",
    task_rows: "t.status = 'done'",
    checkpoints: "true",
    **dict.fromkeys((run_tasks, labels, score_rows), _ENDED),
}


def multiply(records: Records, times: int, at: int) -> None:
    """Copy all ended evaluations with their tasks and scores, by the database alone, until there
    are `times` as many. Long summaries and files are shared. `at`: another place for each call,
    from 1 to 61, in keys and digests.
    """
    first, last = "SELECT 1001", 999 + times
    numbers = f"{first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last}"  # noqa: S608
    with records.transaction() as connection:
        for table, changes in _COPIED.items():
            columns = ", ".join(f'"{column.name}"' for column in table.c)
            copied = ", ".join(
                changes.get(column.name, "{column}").format(
                    column=f't."{column.name}"', n="n", at=at
                )
                for column in table.c
            )
            rows = f"SELECT {copied} FROM {table.name} AS t, numbers WHERE {_WHERE[table]}"  # noqa: S608
            source = f"WITH RECURSIVE numbers(n) AS ({numbers}) {rows}"
            copied = f"INSERT INTO {table.name} ({columns}) {source}"
            # A few keys have this number at this place already: they stay shared.
            connection.execute(sa.text(f"{copied} ON CONFLICT DO NOTHING"))
        connection.execute(
            board_entries.boards.update().values(listed=board_entries.boards.c.listed * times)
        )
        if records.engine.dialect.name == "postgresql":
            connection.execute(sa.text("ANALYZE"))


def _templates(records: Records, copies: int) -> Iterator[_Template]:
    """The first ones that were submitted; copies come later."""
    with records.reading() as connection:
        query = sa.select(runs).where(runs.c.kind == "evaluation", runs.c.status == "succeeded")
        found = _dicts(connection, query.order_by(runs.c.created_at))
        assert found, "evaluations to copy"
        for run in found[: len(found) - copies]:
            yield _template(connection, run)


def _template(connection: sa.Connection, run: dict[str, Any]) -> _Template:
    own = run_tasks.c.run_id == run["id"]
    named = _dicts(connection, sa.select(run_tasks).where(own))
    tasks: dict[str, dict[str, Any]] = {}
    keys = {row["task_key"] for row in named}
    while keys:
        found = _dicts(connection, sa.select(task_rows).where(task_rows.c.key.in_(keys)))
        tasks |= {row["key"]: row for row in found if row["kind"] not in _SHARED}
        keys = {part for row in found for part in json.loads(row["parts"])} - tasks.keys()
    mine = {
        task_rows: list(tasks.values()),
        run_tasks: named,
        attempts: _dicts(
            connection, sa.select(attempts).where(attempts.c.task_key.in_(list(tasks)))
        ),
        labels: _dicts(connection, sa.select(labels).where(labels.c.run_id == run["id"])),
        checkpoints: _dicts(
            connection, sa.select(checkpoints).where(checkpoints.c.digest == run["checkpoint"])
        ),
    }
    long = [row["summary_id"] for row in tasks.values() if row["summary_id"] is not None]
    texts = summaries.read_long_summaries(connection, long)
    digests = [run["checkpoint"], *(row["result"] for row in tasks.values())]
    ids = [run["id"], *tasks, *(at.removeprefix("sha256:") for at in digests if at)]
    return _Template(
        run, mine, texts, _shown(connection, run["id"]), _drawn(connection, tasks), tuple(ids)
    )


def _shown(connection: sa.Connection, identity: str) -> dict[str, Score]:
    query = (
        sa.select(score_rows, board_entries.boards.c.signature)
        .join(board_entries.boards, board_entries.boards.c.id == score_rows.c.board_id)
        .where(score_rows.c.run_id == identity)
    )
    return {
        row.metric: results.build_score(
            row.metric,
            row.value,
            row.signature,
            None if row.low is None else (row.low, row.high),
        )
        for row in connection.execute(query)
    }


def _copy(connection: sa.Connection, template: _Template, number: int) -> None:
    new = {old: _other(old, number) for old in template.ids}
    pattern = re.compile("|".join(map(re.escape, new)))

    def change(text: str) -> str:
        renamed = pattern.sub(lambda found: new[found[0]], text)
        return _NUMBER.sub(lambda found: _moved(found[0], number), renamed)

    long = {
        old: summaries.store_long_summary(connection, change(text))
        for old, text in template.texts.items()
    }
    for table, rows in template.rows.items():
        made = [_row(table, row, change, long, number) for row in rows]
        if made:
            connection.execute(table.insert(), made)
    run = _row(runs, template.run, change, long, number)
    run["snapshot"] = _packed(template.run["snapshot"], change, long)
    run["event_log"] = _packed(template.run["event_log"], change, long)
    connection.execute(runs.insert(), run)
    row = connection.execute(sa.select(runs).where(runs.c.id == run["id"])).one()
    moved = {name: _score(name, score, number) for name, score in template.scores.items()}
    partial = json.loads(run["request"])["subset"]
    named = _draw(connection, template, new, number)
    board_entries.enter_shown_scores(connection, row, moved, is_partial=partial, draws=named)


def _drawn(connection: sa.Connection, keys: Iterable[str]) -> dict[str, dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = {}
    for row in connection.execute(sa.select(draws).where(draws.c.task_key.in_(list(keys)))):
        found.setdefault(row.task_key, {})[row.metric] = row.packed
    return found


def _draw(
    connection: sa.Connection, template: _Template, new: Mapping[str, str], number: int
) -> dict[str, int]:
    """Other draws for each copy, as unlike as those of two captioners."""
    random = Random(number)
    for key, drawn_ in template.drawn.items():
        texts = {}
        for metric, packed in drawn_.items():
            known = packing.unpack_draws(packed).values
            width = math.hypot(*known) / math.sqrt(packing.DRAWS)
            moved = [each + random.gauss(0, width) for each in known]
            texts[metric] = base64.b64encode(packing.pack_draws(moved)).decode()
        drawn.store_draws(connection, new[key], {"draws": texts})
    return drawn.find_draws(connection, [new[key] for key in template.drawn])


def _row(
    table: sa.Table,
    row: Mapping[str, Any],
    change: Callable[[str], str],
    long: Mapping[int, int],
    number: int,
) -> dict[str, Any]:
    found = {}
    for name, value in row.items():
        if isinstance(value, str):
            found[name] = change(value)
        elif isinstance(value, float) and name.endswith("_at"):
            found[name] = value + number
        elif name == "summary_id" and value is not None:
            found[name] = long[value]
        else:
            found[name] = value
    if table is attempts:
        del found["id"]
    if table is labels and row["name"] == "step":
        found["value"] = str(number)
    return found


def _packed(data: bytes, change: Callable[[str], str], long: Mapping[int, int]) -> bytes:
    found = json.loads(change(json.dumps(summaries.unpack_json(data))))
    for row in found:
        if isinstance(row, dict) and row["summary_id"] is not None:
            row["summary_id"] = long[row["summary_id"]]
        elif isinstance(row, list) and row[2].isdecimal():
            row[2] = str(long[int(row[2])])
    return summaries.pack_json(found)


def _score(name: str, score: Score, number: int) -> Score:
    value, interval = score.value, score.interval
    return results.build_score(
        catalogue.find_metric(name).name,
        None if value is None else float(_moved(repr(value), number)),
        score.signature,
        interval and (float(_moved(repr(interval[0]), number)), interval[1]),
    )


def _moved(text: str, number: int) -> str:
    """A number near this one; the same for the same text in the same copy."""
    share = zlib.crc32(f"{number} {text}".encode()) / 2**32 - 0.5
    return repr(float(text) * (1 + _SPREAD * share))


def _other(old: str, number: int) -> str:
    digest = hashlib.sha256(f"{number} {old}".encode()).hexdigest()
    return f"ev_{digest[:24]}" if old.startswith("ev_") else digest


def _dicts(connection: sa.Connection, query: sa.Select[Any]) -> Rows:
    return [dict(row._mapping) for row in connection.execute(query)]
