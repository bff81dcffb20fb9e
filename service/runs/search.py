"""Lists of runs in pages, filtered by dataset, state and labels.

Cursors are opaque; pages neither repeat nor skip runs while new ones are added.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from service.contract import limits
from service.contract.api.runs import RunOut
from service.contract.errors import InvalidCursor, InvalidRequest
from service.contract.formats import strict_json
from service.runs.base import AnyKind
from service.works.parts import Parts
from service.works.tables import labels, runs

PARAMETERS = ("dataset", "status", "limit", "cursor")
_CHECK_BYTES = 6


@dataclass(frozen=True)
class Asked:
    """A request for a page; `dataset` is a name, or name@version."""

    dataset: str | None = None
    status: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    limit: int = 50
    cursor: str | None = None


def page(parts: Parts, kind: AnyKind, asked: Asked) -> tuple[list[RunOut], str | None]:
    """A page of runs, the latest first, and the next page's cursor, which names the last row."""
    of = kind.place.removeprefix("/v1/")
    query = sa.select(runs.c.id, runs.c.created_at).where(
        runs.c.kind == kind.name, *_meeting(asked)
    )
    if asked.cursor is not None:
        created_at, identity = read_cursor(of, asked.cursor, float, str)
        query = query.where(
            sa.tuple_(runs.c.created_at, runs.c.id) < sa.tuple_(created_at, identity)
        )
    query = query.order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(asked.limit + 1)
    with parts.records.reading() as connection:
        found = connection.execute(query).all()
    items = [kind.look(parts, row.id, whole=False)[0] for row in found[: asked.limit]]
    if len(found) <= asked.limit:
        return items, None
    last = found[asked.limit - 1]
    return items, write_cursor(of, last.created_at, last.id)


def _meeting(asked: Asked) -> Iterable[sa.ColumnElement[bool]]:
    if asked.dataset is not None:
        name, _, version = asked.dataset.partition("@")
        yield runs.c.dataset_name == name
        if version:
            yield runs.c.dataset_version == int(version.removeprefix("v"))
    if asked.status is not None:
        yield runs.c.status == asked.status
    yield from having(asked.labels)


def having(wanted: Mapping[str, str]) -> list[sa.ColumnElement[bool]]:
    """The conditions for runs that have these labels."""
    return [
        runs.c.id.in_(
            sa.select(labels.c.run_id).where(labels.c.name == name, labels.c.value == value)
        )
        for name, value in wanted.items()
    ]


def wanted_labels(
    query: Iterable[tuple[str, str]],
    parameters: Sequence[str] = PARAMETERS,
    *,
    labelled: bool = True,
) -> dict[str, str]:
    """The query's `label.NAME` parameters; unknown parameters are refused, not ignored."""
    found = {}
    known = [*parameters, *(["label.NAME"] if labelled else [])]
    for name, value in query:
        if labelled and name.startswith("label.") and "\0" not in name + value:
            found[name.removeprefix("label.")] = value
        elif name not in parameters:
            raise InvalidRequest(
                f"expected {', '.join(known[:-1])} or {known[-1]}, found {name!r:.100}",
                [(strict_json.pointer(["query", name]), "unknown, or with a NUL in it")],
            )
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
