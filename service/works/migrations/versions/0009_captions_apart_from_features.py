"""what versions of datasets are identified by; captions apart from features"""

import hashlib
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

SCORES = ("value", "low", "high")
INDEXES = {
    "ix_runs_submitted": ("kind", "{}", "split", "created_at"),
    "ix_runs_ended": ("kind", "{}", "split", "finished_at"),
}
BEFORE, NOW = "dataset_digest", "dataset_captions"

datasets = sa.table("datasets", sa.column("digest"), sa.column("captions"))
runs = sa.table("runs", *map(sa.column, ("id", "checkpoint", BEFORE, NOW)))
scores = sa.table(
    "scores",
    *map(sa.column, ("run_id", "metric", "board_id", *SCORES)),
    *map(sa.column, ("listed", "first", "same", "created_at")),
)
boards = sa.table(
    "boards",
    *map(sa.column, ("id", "dataset_name", NOW, "split", "metric", "signature", "listed")),
)


def upgrade() -> None:
    with op.batch_alter_table("datasets") as batch:
        batch.add_column(sa.Column("captions", sa.String(71), nullable=False, server_default=""))
        batch.add_column(sa.Column("content", sa.String(71)))
        batch.add_column(sa.Column("captions_content", sa.String(71)))
    with op.batch_alter_table("runs") as batch:
        batch.add_column(sa.Column(NOW, sa.String(71), nullable=False, server_default=""))
    _run(datasets.update().values(captions=datasets.c.digest))
    _run(runs.update().values({NOW: runs.c[BEFORE]}))
    _index_runs_by(NOW)
    op.execute(f"ALTER TABLE boards RENAME COLUMN {BEFORE} TO {NOW}")


def downgrade() -> None:
    _part_boards()
    op.execute(f"ALTER TABLE boards RENAME COLUMN {NOW} TO {BEFORE}")
    _index_runs_by(BEFORE)
    with op.batch_alter_table("runs") as batch:
        batch.drop_column(NOW)
    with op.batch_alter_table("datasets") as batch:
        for name in ("captions_content", "content", "captions"):
            batch.drop_column(name)


def _index_runs_by(column: str) -> None:
    for name, columns in INDEXES.items():
        op.drop_index(name, "runs")
        op.create_index(name, "runs", [each.format(column) for each in columns])


def _part_boards() -> None:
    """Each version gets boards of its own, as it had them."""
    of_others = (
        sa.select(boards)
        .where(
            sa.exists().where(
                scores.c.board_id == boards.c.id,
                runs.c.id == scores.c.run_id,
                runs.c[BEFORE] != boards.c[NOW],
            )
        )
        .order_by(boards.c.id)
    )
    for board in _run(of_others).all():
        query = sa.select(scores, runs.c[BEFORE], runs.c.checkpoint)
        query = query.join(runs, runs.c.id == scores.c.run_id).where(scores.c.board_id == board.id)
        order = scores.c.created_at, scores.c.run_id, scores.c.metric
        by_version: dict[str, list[Any]] = {}
        for row in _run(query.order_by(*order)):
            by_version.setdefault(getattr(row, BEFORE), []).append(row)
        free = [board.id]
        for digest, rows in by_version.items():
            _fill(_board(board, digest, free), rows)


def _board(board: Any, digest: str, free: list[int]) -> int:
    """The id of a version's board: that of the common one, once, then new ones."""
    if free:
        own = boards.update().where(boards.c.id == board.id)
        _run(own.values({NOW: digest}))
        return free.pop()
    new = {**board._mapping, NOW: digest}  # noqa: SLF001
    del new["id"]
    return int(_run(boards.insert().values(new).returning(boards.c.id)).scalar_one())


def _fill(board: int, rows: Sequence[Any]) -> None:
    """Put these scores, in the order of their runs, on a board."""
    seen: set[tuple[Any, ...]] = set()
    for row in rows:
        equal = [board, *(getattr(row, name) for name in SCORES)]
        facts = (row.checkpoint, *equal)
        first = row.listed and facts not in seen
        seen |= {facts} if row.listed else set()
        same = _number(row.checkpoint, equal) if row.listed else None
        own = scores.c.run_id == row.run_id, scores.c.metric == row.metric
        _run(scores.update().where(*own).values(board_id=board, first=first, same=same))
    listed = sum(bool(row.listed) for row in rows)
    _run(boards.update().where(boards.c.id == board).values(listed=listed))


def _number(checkpoint: str | None, equal: Sequence[float | None]) -> int:
    plain = [at if at is None else at + 0 for at in equal]
    digest = hashlib.sha256(repr((checkpoint, plain)).encode()).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def _run(statement: Any) -> Any:
    return op.get_bind().execute(statement)
