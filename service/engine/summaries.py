"""Summaries, draws and events: stored small, and read only when needed.

A short summary is a text in its task's row. A long one is packed in a row of its own, which never
changes; the task, runs that have ended and events name it by its id.
"""

import base64
import json
import zlib
from collections.abc import Container, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.runs import ScoresEvent
from service.contract import results
from service.contract.results import ScoreSummary
from service.engine.records import in_batches
from service.engine.tables import draws, summary_rows

SHORT = 500  # characters; storing shorter ones apart saves little

# What is written down of an ended run's tasks.
_KEPT = (
    "name",
    "key",
    "kind",
    "status",
    "attempt",
    "done",
    "total",
    "result",
    "summary",
    "error",
    "started_at",
    "finished_at",
    "summary_id",
    "cached",
)


class StoredEvent(NamedTuple):
    version: int
    kind: str
    payload: str


def pack_json(value: Any) -> bytes:
    return zlib.compress(json.dumps(value).encode())


def unpack_json(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))


def store_summary(connection: Connection, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Store a summary; returns the values of the columns of its task."""
    text = json.dumps(dict(summary))
    if len(text) <= SHORT:
        return {"summary": text, "summary_id": None}
    return {"summary": None, "summary_id": store_long_summary(connection, text)}


def store_long_summary(connection: Connection, text: str) -> int:
    """Store a long summary; returns its id."""
    row = summary_rows.insert().values(packed=zlib.compress(text.encode()))
    return int(connection.execute(row.returning(summary_rows.c.id)).scalar_one())


def fill_summaries(connection: Connection, rows: Iterable[MutableMapping[str, Any]]) -> None:
    """Read the whole long summaries of tasks."""
    long = [row for row in rows if row.get("summary_id") is not None]
    texts = read_long_summaries(connection, [row["summary_id"] for row in long])
    for row in long:
        row["summary"] = texts[row["summary_id"]]


def read_long_summaries(connection: Connection, wanted: Iterable[int]) -> dict[int, str]:
    """Long summaries by id."""
    found: dict[int, str] = {}
    for batch in in_batches(dict.fromkeys(wanted)):
        these = summary_rows.c.id.in_(batch)
        rows = connection.execute(sa.select(summary_rows).where(these))
        found |= {row.id: zlib.decompress(row.packed).decode() for row in rows}
    return found


def pack_snapshot(rows: Sequence[Mapping[str, Any]], shown: Container[str]) -> bytes:
    """The tasks of a run that ends, whose summaries are filled. Of long summaries of scores, only
    those in `shown` are written down here; `fill` reads the others.
    """
    return pack_json([_written(row, shown) for row in rows])


def _written(row: Mapping[str, Any], shown: Container[str]) -> dict[str, Any]:
    kept = {name: row[name] for name in _KEPT}
    if row["summary_id"] is None or results.find_summary_model(row["kind"]) is not ScoreSummary:
        return kept | {"summary_id": None}
    summary = json.loads(row["summary"])
    for name in ("scores", "intervals", "signature"):
        if isinstance(summary.get(name), dict):
            summary[name] = {at: found for at, found in summary[name].items() if at in shown}
    return kept | {"summary": json.dumps(summary)}


def format_scores_event(row: Mapping[str, Any], scored: ScoreSummary) -> str:
    """The payload of an event that tells a task's scores; a long one names the summary."""
    if row["summary_id"] is not None:
        return str(row["summary_id"])
    return _told(scored)


def _told(scored: ScoreSummary) -> str:
    return ScoresEvent(scores=dict(scored.scores), signature=scored.signature).model_dump_json()


def expand_events(connection: Connection, events: Iterable[Sequence[Any]]) -> list[StoredEvent]:
    """Events (version, kind, payload) as they are sent."""
    found = [StoredEvent(*event) for event in events]
    named = [int(event.payload) for event in found if event.payload.isdecimal()]
    texts = read_long_summaries(connection, named)
    return [
        event._replace(payload=_told(ScoreSummary.model_validate_json(texts[int(event.payload)])))
        if event.payload.isdecimal()
        else event
        for event in found
    ]


_FIELD = "draws"  # of `results.ScoreSummary`


def store_draws(connection: Connection, key: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Store the draws of a task that is done; returns the summary without them."""
    left: MutableMapping[str, Any] = dict(summary)
    found = left.pop(_FIELD, None)
    if found:
        connection.execute(draws.delete().where(draws.c.task_key == key))
        rows = [
            {"task_key": key, "metric": metric, "packed": base64.b64decode(text)}
            for metric, text in found.items()
        ]
        connection.execute(draws.insert(), rows)
    return dict(left)


def find_draws(connection: Connection, keys: Iterable[str]) -> dict[str, int]:
    """Find the ids of the tasks' draws by metric: those of the first task that has the metric."""
    order = {key: at for at, key in enumerate(keys)}
    found: dict[str, tuple[int, int]] = {}
    query = sa.select(draws.c.id, draws.c.task_key, draws.c.metric)
    for batch in in_batches(order):
        for row in connection.execute(query.where(draws.c.task_key.in_(batch))):
            at = order[row.task_key], row.id
            found[row.metric] = min(at, found.get(row.metric, at))
    return {metric: at[1] for metric, at in found.items()}


def read_draws(connection: Connection, wanted: Iterable[int]) -> dict[int, bytes]:
    """Draws by id."""
    found: dict[int, bytes] = {}
    for batch in in_batches(dict.fromkeys(wanted)):
        rows = connection.execute(
            sa.select(draws.c.id, draws.c.packed).where(draws.c.id.in_(batch))
        )
        found |= {row.id: row.packed for row in rows}
    return found
