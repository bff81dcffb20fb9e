"""A record filled fast: evaluations that the service made, copied with other ids, checkpoints,
scores and times. Long summaries, draws of scores and files are shared.
"""

from collections.abc import Mapping

import sqlalchemy as sa

from service.engine.records import Records
from service.engine.tables import (
    boards,
    checkpoints,
    labels,
    run_tasks,
    runs,
    score_rows,
    task_rows,
)

# How a copy differs, by table and column; other columns are equal. {n}: its number, from 1001.
# {at}: the place of the number in 64 hex digits.
_ID, _EARLIER = "{column} || CAST({at} * 10000 + {n} AS TEXT)", "{column} - 1000 * {n}"
_KEY = "substr({column}, 1, {at} - 1) || CAST({n} AS TEXT) || substr({column}, {at} + 4)"
_DIGEST = "substr({column}, 1, {at} + 6) || CAST({n} AS TEXT) || substr({column}, {at} + 11)"
_COPIED: Mapping[sa.Table, Mapping[str, str]] = {
    runs: {"id": _ID, "checkpoint": _DIGEST, "created_at": _EARLIER, "finished_at": _EARLIER},
    task_rows: {"key": _KEY, "created_at": _EARLIER},
    run_tasks: {"run_id": _ID, "task_key": _KEY},
    labels: {"run_id": _ID, "created_at": _EARLIER},
    checkpoints: {"digest": _DIGEST, "created_at": _EARLIER},
    score_rows: {
        "run_id": _ID,
        "value": "{column} + 0.000001 * {n}",
        "place": "{column} + 0.000001 * {n}",
        "same": "{column} + {n}",
        "created_at": _EARLIER,
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
    are `times` as many, at most 9,000. `at`: another place for each call, from 1 to 61, in keys
    and digests.
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
        connection.execute(boards.update().values(listed=boards.c.listed * times))
        if records.engine.dialect.name == "postgresql":
            connection.execute(sa.text("ANALYZE"))
