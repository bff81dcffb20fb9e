"""boards, on which scores are found by index; indexes for lists of runs, and the time of labels"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

AT_ONCE = 200
# As they were when this was written.
ALIASES = {"perplexity": "geomean_join_pplx_none"}
SPLIT = ("dataset_name", "dataset_digest", "split")
SCORES = ("value", "low", "high")

runs = sa.table(
    "runs", *map(sa.column, ("id", "request", "checkpoint", "status", "created_at", *SPLIT))
)
old_scores = sa.table("scores", *map(sa.column, ("run_id", "metric", *SCORES, "signature")))
labels = sa.table("labels", *map(sa.column, ("run_id", "name", "value")))


def upgrade() -> None:
    _exchange(OLD, NEW)
    _make_boards()
    _date_labels()


def downgrade() -> None:
    _undate_labels()
    _drop_boards()
    _exchange(NEW, OLD)


# Indexes of runs

NEW = {
    "ix_runs_kind": ("kind", "created_at", "id"),
    "ix_runs_dataset": ("kind", "dataset_name", "created_at", "id"),
    "ix_runs_status": ("kind", "status", "created_at", "id"),
    "ix_runs_submitted": ("kind", "dataset_digest", "split", "created_at"),
    "ix_runs_ended": ("kind", "dataset_digest", "split", "finished_at"),
    "ix_runs_checkpoint": ("checkpoint", "dataset_digest", "split"),
}
OLD = {
    "ix_runs_created_at": ("created_at",),
    "ix_runs_kind_created_at": ("kind", "created_at"),
    "ix_runs_dataset_digest_split": ("dataset_digest", "split"),
    "ix_runs_dataset_name_dataset_version": ("dataset_name", "dataset_version"),
}


def _exchange(old: Mapping[str, Sequence[str]], new: Mapping[str, Sequence[str]]) -> None:
    for name in old:
        op.drop_index(name, "runs")
    for name, columns in new.items():
        op.create_index(name, "runs", list(columns))


# Boards

# Not better high, as it was when this was written.
NOT_HIGH = {
    "wmd_distance",
    "wmd_unit_distance",
    "caption_length",
    "words_used",
    *(f"distinct_{n}" for n in (1, 2, 3, 4)),
    *(f"entropy_{n}" for n in (1, 2)),
    "from_training",
}
AGGREGATES = {"sum", "mean", "median", "geomean", "max", "min"}


def _make_boards() -> None:
    columns = "id", "created_at", "checkpoint", "status", "request", *SPLIT
    having = runs.c.id.in_(sa.select(old_scores.c.run_id))
    query = sa.select(*(runs.c[name] for name in columns)).where(having)
    of_run = {row.id: row._mapping for row in _run(query)}  # noqa: SLF001
    found = [dict(row._mapping) for row in _run(sa.select(old_scores))]  # noqa: SLF001
    found.sort(key=lambda row: (of_run[row["run_id"]]["created_at"], row["run_id"], row["metric"]))
    op.drop_table("scores")
    boards, rows = _entered(of_run, found)
    for table, made in ((_board_table(), boards), (_score_table(), rows)):
        for start in range(0, len(made), AT_ONCE):
            op.bulk_insert(table, made[start : start + AT_ONCE])
    if op.get_bind().dialect.name == "postgresql":
        last = "(SELECT coalesce(max(id), 0) + 1 FROM boards)"
        op.execute(f"SELECT setval(pg_get_serial_sequence('boards', 'id'), {last}, false)")


def _entered(
    of_run: Mapping[str, Mapping[str, Any]], found: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Boards, and scores on them; the scores are given in the order of their runs."""
    boards: dict[tuple[str, ...], dict[str, Any]] = {}
    seen: set[tuple[Any, ...]] = set()
    listed: set[tuple[str, str]] = set()
    rows = []
    for score in found:
        run = of_run[score["run_id"]]
        metric = ALIASES.get(score["metric"], score["metric"])
        at = (*(run[name] for name in SPLIT), metric, score["signature"])
        names = (*SPLIT, "metric", "signature")
        fresh = {"id": len(boards) + 1, "listed": 0, **dict(zip(names, at, strict=True))}
        board = boards.setdefault(at, fresh)
        equal = [board["id"], *(score[name] for name in SCORES)]
        is_listed = _is_whole(run) and score["value"] is not None
        is_listed = is_listed and (score["run_id"], metric) not in listed
        same = (run["checkpoint"], *equal)
        rows.append(
            {name: score[name] for name in ("run_id", "metric", *SCORES)}
            | {
                "board_id": board["id"],
                "place": _place(metric, score["value"]),
                "listed": is_listed,
                "first": is_listed and same not in seen,
                "same": _number(run["checkpoint"], equal) if is_listed else None,
                "created_at": run["created_at"],
            }
        )
        if is_listed:
            board["listed"] += 1
            listed.add((score["run_id"], metric))
            seen.add(same)
    return list(boards.values()), rows


def _is_whole(run: Mapping[str, Any]) -> bool:
    return run["status"] != "canceled" and not json.loads(run["request"]).get("subset", False)


def _place(metric: str, value: float | None) -> float | None:
    if value is None:
        return None
    parts = metric.split("_")
    if len(parts) == 4 and parts[0] in AGGREGATES:  # a pre-gen metric
        _, _, caption, chosen = parts
        high = {"pplx": False, "prob": chosen in ("none", "miss0")}
        is_high = high.get(caption, chosen in ("filter0", "prefix0"))
    else:
        is_high = metric not in NOT_HIGH
    return -value if is_high else value


def _number(checkpoint: str | None, equal: Sequence[float | None]) -> int:
    plain = [at if at is None else at + 0 for at in equal]
    digest = hashlib.sha256(repr((checkpoint, plain)).encode()).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def _board_table() -> sa.Table:
    table = op.create_table(
        "boards",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("dataset_name", sa.String(200), nullable=False),
        sa.Column("dataset_digest", sa.String(71), nullable=False),
        sa.Column("split", sa.String(100), nullable=False),
        sa.Column("metric", sa.String(100), nullable=False),
        sa.Column("signature", sa.Text, nullable=False),
        sa.Column("listed", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_boards"),
    )
    columns = ["dataset_digest", "split", "metric"]
    op.create_index("ix_boards_split", "boards", columns)
    return table


def _score_table() -> sa.Table:
    table = op.create_table(
        "scores",
        sa.Column("run_id", sa.String(40), nullable=False),
        sa.Column("metric", sa.String(100), nullable=False),
        sa.Column("board_id", sa.Integer, nullable=False),
        *(sa.Column(name, sa.Float) for name in (*SCORES, "place")),
        sa.Column("listed", sa.Boolean, nullable=False),
        sa.Column("first", sa.Boolean, nullable=False),
        sa.Column("same", sa.BigInteger),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "metric", name="pk_scores"),
        sqlite_with_rowid=False,
    )
    best = ["board_id", "first", "place", "created_at", "run_id", "low", "high"]
    op.create_index("ix_scores_best", "scores", best)
    latest = ["board_id", "listed", "created_at", "run_id"]
    op.create_index("ix_scores_latest", "scores", latest)
    op.create_index("ix_scores_same", "scores", ["same"])
    return table


def _drop_boards() -> None:
    boards = sa.table("boards", sa.column("id"), sa.column("signature"))
    scores = sa.table("scores", *map(sa.column, ("run_id", "metric", *SCORES, "board_id")))
    kept = [scores.c[name] for name in ("run_id", "metric", *SCORES)]
    query = sa.select(*kept, boards.c.signature).join(boards, boards.c.id == scores.c.board_id)
    found = [dict(row._mapping) for row in _run(query)]  # noqa: SLF001
    op.drop_table("scores")
    op.drop_table("boards")
    table = op.create_table(
        "scores",
        sa.Column("run_id", sa.String(40), nullable=False),
        sa.Column("metric", sa.String(100), nullable=False),
        *(sa.Column(name, sa.Float) for name in SCORES),
        sa.Column("signature", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "metric", name="pk_scores"),
    )
    op.create_index("ix_scores_metric_value", "scores", ["metric", "value"])
    for start in range(0, len(found), AT_ONCE):
        op.bulk_insert(table, found[start : start + AT_ONCE])


# Labels, which get the time of their run


def _date_labels() -> None:
    age = sa.select(runs.c.created_at).where(runs.c.id == labels.c.run_id).scalar_subquery()
    _remake_labels(sa.Column("created_at", sa.Float, nullable=False), age=age)
    op.create_index("ix_labels_latest", "labels", ["name", "value", "created_at", "run_id"])


def _undate_labels() -> None:
    _remake_labels()
    op.create_index("ix_labels_name_value", "labels", ["name", "value"])


def _remake_labels(*more: sa.Column[Any], age: Any = None) -> None:
    names: tuple[str, ...] = ("run_id", "name", "value")
    query = sa.select(*(labels.c[name] for name in names))
    if more:
        names, query = (*names, "created_at"), query.add_columns(age)
    found = [dict(zip(names, row, strict=True)) for row in _run(query)]
    op.drop_table("labels")
    table = op.create_table(
        "labels",
        sa.Column("run_id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("value", sa.String(500), nullable=False),
        *more,
        sa.PrimaryKeyConstraint("run_id", "name", name="pk_labels"),
        sqlite_with_rowid=not more,
    )
    for start in range(0, len(found), AT_ONCE):
        op.bulk_insert(table, found[start : start + AT_ONCE])


def _run(statement: Any, *values: Any) -> Any:
    return op.get_bind().execute(statement, *values)
