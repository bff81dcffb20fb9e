"""long summaries stored once, ended runs' works and events packed, needs of works forgotten"""

import hashlib
import json
import math
import re
import zlib
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import pydantic_core
import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

SHORT = 500
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?|-?Infinity|NaN")
MARK = "\x01"
# As they were when this was written.
ALIASES = {"perplexity": "geomean_join_pplx_none"}
NOT_SCORES = {"look", "comparison", "forecast", "probe", "health", "learned"}

works = sa.table(
    "works",
    *map(sa.column, ("key", "status", "inputs", "parts", "summary", "summary_id")),
)
summaries = sa.table(
    "summaries", *map(sa.column, ("id", "shape_id")), sa.column("numbers", sa.LargeBinary)
)
shapes = sa.table("summary_shapes", *map(sa.column, ("id", "digest", "text")))
needs = sa.table("work_needs", sa.column("work_key"), sa.column("needs_key"))
events = sa.table("events", *map(sa.column, ("run_id", "version", "kind", "payload")))
run_works = sa.table("run_works", *map(sa.column, ("run_id", "name", "cached")))
runs = sa.table(
    "runs",
    *map(sa.column, ("id", "snapshot")),
    sa.column("packed", sa.LargeBinary),
    sa.column("event_log", sa.LargeBinary),
)
old_scores = sa.table("scores", sa.column("run_id"), sa.column("metric"))


def upgrade() -> None:
    known = _add_summaries()
    op.add_column("runs", sa.Column("packed", sa.LargeBinary))
    op.add_column("runs", sa.Column("event_log", sa.LargeBinary))
    for identity in _ids(runs.c.id, runs.c.snapshot.is_not(None)):
        _pack(identity, known)
    op.drop_column("runs", "snapshot")
    op.execute("ALTER TABLE runs RENAME COLUMN packed TO snapshot")
    done = sa.select(works.c.key).where(works.c.status == "done")
    op.execute(needs.delete().where(needs.c.work_key.in_(done)))
    op.drop_index("ix_attempts_work_key", "attempts")
    still = sa.text("ended_at IS NULL")
    op.create_index(
        "ix_attempts_work_key",
        "attempts",
        ["work_key"],
        sqlite_where=still,
        postgresql_where=still,
    )


def downgrade() -> None:
    op.drop_index("ix_attempts_work_key", "attempts")
    op.create_index("ix_attempts_work_key", "attempts", ["work_key"])
    _restore_needs()
    op.execute("ALTER TABLE runs RENAME COLUMN snapshot TO packed")
    op.add_column("runs", sa.Column("snapshot", sa.Text))
    for identity in _ids(runs.c.id, runs.c.packed.is_not(None)):
        _unpack(identity)
    _tell_events()
    for name in ("packed", "event_log"):
        op.drop_column("runs", name)
    _drop_summaries()


# Summaries


def _add_summaries() -> dict[str, tuple[int, bytes]]:
    """The ids of works' long summaries by key, with hashes of the texts."""
    known = {}
    op.create_table(
        "summaries",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("shape_id", sa.Integer, nullable=False),
        sa.Column("numbers", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_summaries"),
    )
    op.create_table(
        "summary_shapes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_summary_shapes"),
    )
    op.create_index("ix_summary_shapes_digest", "summary_shapes", ["digest"], unique=True)
    op.add_column("works", sa.Column("summary_id", sa.Integer))
    for key in _ids(works.c.key, sa.func.length(works.c.summary) > SHORT):
        own = works.c.key == key
        text = _run(sa.select(works.c.summary).where(own)).scalar_one()
        known[key] = _new_summary(text), _hash(text)
        _run(works.update().where(own).values(summary=None, summary_id=known[key][0]))
    return known


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _drop_summaries() -> None:
    for key in _ids(works.c.key, works.c.summary_id.is_not(None)):
        own = works.c.key == key
        identity = _run(sa.select(works.c.summary_id).where(own)).scalar_one()
        _run(works.update().where(own).values(summary=_summary(identity)))
    op.drop_column("works", "summary_id")
    op.drop_table("summaries")
    op.drop_table("summary_shapes")


def _new_summary(text: str) -> int:
    numbers = array("d")

    def take(found: re.Match[str]) -> str:
        number = float(found[0])
        if _written(number) != found[0]:
            return found[0]
        numbers.append(number)
        return MARK

    shape = NUMBER.sub(take, text)
    digest = hashlib.sha256(shape.encode()).hexdigest()
    of = _run(sa.select(shapes.c.id).where(shapes.c.digest == digest)).scalar()
    if of is None:
        made = shapes.insert().values(digest=digest, text=shape)
        of = _run(made.returning(shapes.c.id)).scalar_one()
    packed = zlib.compress(numbers.tobytes())
    stored = summaries.insert().values(shape_id=of, numbers=packed)
    return int(_run(stored.returning(summaries.c.id)).scalar_one())


def _summary(identity: int) -> str:
    query = sa.select(shapes.c.text, summaries.c.numbers).where(shapes.c.id == summaries.c.shape_id)
    row = _run(query.where(summaries.c.id == identity)).one()
    first, *rest = row.text.split(MARK)
    numbers = array("d", zlib.decompress(row.numbers))
    return str(first) + "".join(
        _written(number) + text for number, text in zip(numbers, rest, strict=True)
    )


def _written(number: float) -> str:
    return repr(number) if math.isfinite(number) else json.dumps(number)


# Ended runs: their works and events


def _pack(identity: str, known: Mapping[str, tuple[int, bytes]]) -> None:
    own = runs.c.id == identity
    found = json.loads(_run(sa.select(runs.c.snapshot).where(own)).scalar_one())
    these = run_works.c.run_id == identity
    cached = dict(_run(sa.select(run_works.c.name, run_works.c.cached).where(these)).all())
    of_run = old_scores.c.run_id == identity
    metrics = _run(sa.select(old_scores.c.metric).where(of_run)).scalars()
    shown = {ALIASES.get(metric, metric) for metric in metrics}
    told: dict[str, str] = {}
    for row in found:
        row |= {"summary_id": None, "cached": bool(cached[row["name"]])}
        text = row["summary"] or ""
        if len(text) > SHORT and row["kind"] not in NOT_SCORES:
            same, digest = known.get(row["key"], (None, b""))
            # It differs where it was computed again since.
            row["summary_id"] = same if digest == _hash(text) else _new_summary(text)
            told[_told(text)] = str(row["summary_id"])
            row["summary"] = json.dumps(_reduced(json.loads(text), shown))
    order = events.c.version
    query = sa.select(order, events.c.kind, events.c.payload).order_by(order)
    log = [
        [version, kind, told.get(payload, payload)]
        for version, kind, payload in _run(query.where(events.c.run_id == identity))
    ]
    _run(events.delete().where(events.c.run_id == identity))
    packed = {"packed": _packed(found), "event_log": _packed(log)}
    _run(runs.update().where(own).values(snapshot=None, **packed))


def _reduced(summary: dict[str, Any], shown: set[str]) -> dict[str, Any]:
    for name in ("scores", "intervals", "signature"):
        if isinstance(summary.get(name), dict):
            summary[name] = {at: found for at, found in summary[name].items() if at in shown}
    return summary


def _told(text: str) -> str:
    """The payload of an event that tells the scores of a summary."""
    summary = json.loads(text)
    event = {"scores": summary["scores"], "signature": summary["signature"]}
    return pydantic_core.to_json(event, inf_nan_mode="null").decode()


def _unpack(identity: str) -> None:
    own = runs.c.id == identity
    row = _run(sa.select(runs.c.packed, runs.c.event_log).where(own)).one()
    found = [_whole(work) for work in _unpacked(row.packed)]
    _run(runs.update().where(own).values(snapshot=json.dumps(found)))
    log = _unpacked(row.event_log)
    names = ("run_id", "version", "kind", "payload")
    if log:
        _run(events.insert(), [dict(zip(names, (identity, *at), strict=True)) for at in log])


def _whole(work: dict[str, Any]) -> dict[str, Any]:
    """As it was before; of later ones, what is not written down is as it is now."""
    del work["cached"]
    named = work.pop("summary_id")
    if named is not None:
        work["summary"] = _summary(named)
    if "inputs" not in work:
        table = sa.Table("works", sa.MetaData(), autoload_with=op.get_bind())
        row = _run(sa.select(table).where(table.c.key == work["key"])).one()
        now = dict(row._mapping)  # noqa: SLF001
        del now["summary_id"]
        work = now | work
    return work


def _tell_events() -> None:
    """Write out the events that name a summary."""
    short = sa.func.length(events.c.payload) < len('{"scores":{}}')
    query = sa.select(events).where(events.c.kind == "scores", short)
    for event in _run(query).all():
        own = events.c.run_id == event.run_id, events.c.version == event.version
        told = _told(_summary(int(event.payload)))
        _run(events.update().where(*own).values(payload=told))


def _packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value).encode())


def _unpacked(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))


# What works need


def _restore_needs() -> None:
    for key in _ids(works.c.key, works.c.status == "done"):
        row = _run(sa.select(works.c.inputs, works.c.parts).where(works.c.key == key)).one()
        inputs = [at for at in json.loads(row.inputs).values() if at.startswith("work:")]
        needed = [*(at.removeprefix("work:") for at in inputs), *json.loads(row.parts)]
        rows = [{"work_key": key, "needs_key": need} for need in dict.fromkeys(needed)]
        if rows:
            _run(needs.insert(), rows)


def _run(statement: Any, *values: Any) -> Any:
    return op.get_bind().execute(statement, *values)


def _ids(column: sa.ColumnClause[Any], condition: sa.ColumnElement[bool]) -> Iterator[str]:
    """The keys of rows, found before any of them is changed."""
    yield from _run(sa.select(column).where(condition)).scalars().all()
