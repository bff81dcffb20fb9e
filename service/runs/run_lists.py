"""Lists of runs in pages, filtered by dataset, split, state and labels.

Cursors are opaque; pages neither repeat nor skip runs while new ones are added.
"""

import base64
import hashlib
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.runs import UNFINISHED, Run, StatusFilter
from prescore.plain_text import quoted
from service.contract import limits
from service.contract.errors import InvalidCursor, InvalidRequest
from service.contract.formats import strict_json
from service.engine.service_parts import ServiceParts
from service.engine.tables import labels, runs
from service.runs import run_store
from service.runs.run_store import AnyRunKind

_CHECK_BYTES = 6
_COUNTED = 1000
_LABEL = 100  # characters of a label
_LABELLED = 200  # runs, the latest, whose labels are looked at


@dataclass(frozen=True)
class RunQuery:
    """A request for a page; `dataset` is `name[@version][/split]`."""

    dataset: str | None = None
    status: StatusFilter | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    limit: int = 50
    cursor: str | None = None


def list_runs(
    parts: ServiceParts, kind: AnyRunKind, asked: RunQuery
) -> tuple[Sequence[tuple[str, int]], str | None]:
    """The ids of a page of runs with their versions, the latest first, and the next page's cursor,
    which names the last one.
    """
    of = kind.place.removeprefix("/v1/")
    query = sa.select(runs.c.id, runs.c.version, runs.c.created_at)
    query = query.where(runs.c.kind == kind.name, *filter_runs(asked))
    order = runs.c.created_at, runs.c.id
    with parts.records.reading() as connection:
        if asked.labels:
            query = query.join(labels, labels.c.run_id == runs.c.id)
            query = query.where(*filter_labels(connection, asked.labels))
            order = labels.c.created_at, labels.c.run_id
        if asked.cursor is not None:
            position = read_cursor(of, asked.cursor, float, str)
            query = query.where(sa.tuple_(*order) < sa.tuple_(*position))
        latest = query.order_by(*(column.desc() for column in order)).limit(asked.limit + 1)
        found = connection.execute(latest).all()
    shown = [(row.id, row.version) for row in found[: asked.limit]]
    if len(found) <= asked.limit:
        return shown, None
    last = found[asked.limit - 1]
    return shown, write_cursor(of, last.created_at, last.id)


def build_answers(
    parts: ServiceParts,
    kind: AnyRunKind,
    identities: Sequence[str],
    metrics: Container[str] | None = None,
) -> list[Run]:
    """The answers of runs as lists show them, narrowed to `metrics` if some are named."""
    if not identities:
        return []
    with parts.records.reading() as connection:
        rows = connection.execute(run_store.ROW.where(runs.c.id.in_(identities))).all()
        looked = run_store.load_runs(connection, rows, whole=False)
    return [kind.build_answer(parts, each, metrics) for each in looked]


def filter_runs(asked: RunQuery) -> Iterable[sa.ColumnElement[bool]]:
    """The conditions for runs on this dataset, with this status."""
    if asked.dataset is not None:
        whole, _, split = asked.dataset.partition("/")
        name, _, version = whole.partition("@")
        yield runs.c.dataset_name == name
        if version:
            yield runs.c.dataset_version == int(version.removeprefix("v"))
        if split:
            yield runs.c.split == split
    if asked.status == "unfinished":
        yield runs.c.status.in_(UNFINISHED)
    elif asked.status is not None:
        yield runs.c.status == asked.status


def filter_labels(
    connection: Connection, wanted: Mapping[str, str]
) -> list[sa.ColumnElement[bool]]:
    """The conditions for rows of `labels`, one of each run that has all of these labels: that of
    the label which the fewest runs have.
    """
    few = next(iter(wanted))
    if len(wanted) > 1:
        few = min(wanted, key=lambda name: _count_labelled(connection, name, wanted[name]))
    others = labels.alias()
    return [
        labels.c.name == few,
        labels.c.value == wanted[few],
        *(
            sa.exists().where(
                others.c.run_id == labels.c.run_id,
                others.c.name == name,
                others.c.value == value,
            )
            for name, value in wanted.items()
            if name != few
        ),
    ]


def find_latest_labels(connection: Connection, these: sa.Select[Any]) -> list[str]:
    """NAME=VALUE of the latest of these runs, the latest one's first. `these`: a query for their
    `run_id` and `created_at`.
    """
    few = these.order_by(sa.desc("created_at")).limit(_LABELLED).subquery()
    query = sa.select(labels).join(few, few.c.run_id == labels.c.run_id)
    found = connection.execute(query.order_by(few.c.created_at.desc(), labels.c.name))
    return list(dict.fromkeys(quote_label(f"{row.name}={row.value}") for row in found))


def quote_label(label: str) -> str:
    """NAME=VALUE as messages tell it."""
    return quoted(label[:_LABEL])


def _count_labelled(connection: Connection, name: str, value: str) -> int:
    """Count the runs that have a label; at most _COUNTED, since a few of them are read soon."""
    these = sa.select(labels.c.run_id).where(labels.c.name == name, labels.c.value == value)
    counted = sa.select(sa.func.count()).select_from(these.limit(_COUNTED).subquery())
    return connection.execute(counted).scalar_one()


def read_label_filters(query: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The query's `label.NAME` parameters."""
    found = {}
    for name, value in query:
        if not name.startswith("label."):
            continue
        if "\0" in name + value:
            raise InvalidRequest(
                f"expected a label without NUL, found {name!r:.100}",
                [(strict_json.join_pointer(["query", name]), "with a NUL in it")],
            )
        found[name.removeprefix("label.")] = value
    if len(found) > limits.LABELS:
        raise InvalidRequest(f"expected at most {limits.LABELS} labels, found {len(found)}")
    return found


# The checksum only detects mistakes: a forged position shows nothing that the list would not show.
# itsdangerous would save 8 lines, takes 8 times as long, and needs a secret that all APIs share.
def write_cursor(of: str, *position: Any) -> str:
    """A cursor for the list called `of`: a checksum, then the position as JSON."""
    data = json.dumps(position).encode()
    check = hashlib.sha256(of.encode() + b"\n" + data).digest()[:_CHECK_BYTES]
    return base64.urlsafe_b64encode(check + data).decode().rstrip("=")


def read_cursor(of: str, cursor: str, *kinds: type) -> list[Any]:
    """The position in a cursor; InvalidCursor if it was edited or is of another list."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        position = json.loads(text[_CHECK_BYTES:])
    except (ValueError, RecursionError):
        position = None
    if (
        isinstance(position, list)
        and write_cursor(of, *position) == cursor
        and [type(part) for part in position] == list(kinds)
        and "\\u0000" not in json.dumps(position)
    ):
        return position
    raise InvalidCursor("expected the `next` of an earlier answer of this list")
