"""keys, and whose rows are whose"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

UPLOADS = ("checkpoints", "brought_columns")
INDEXES: dict[str, dict[str, tuple[str, ...]]] = {
    "runs": {
        "ix_runs_kind": ("kind", "created_at", "id"),
        "ix_runs_dataset": ("kind", "dataset_name", "created_at", "id"),
        "ix_runs_split": ("kind", "dataset_name", "split", "created_at", "id"),
        "ix_runs_status": ("kind", "status", "created_at", "id"),
        "ix_runs_submitted": ("kind", "dataset_captions", "split", "created_at"),
        "ix_runs_ended": ("kind", "dataset_captions", "split", "finished_at"),
        "ix_runs_checkpoint": ("checkpoint", "dataset_digest", "split"),
    },
    "boards": {"ix_boards_split": ("dataset_captions", "split", "metric")},
}


def upgrade() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("team", sa.String(64), nullable=False),
        sa.Column("scope", sa.String(12), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=True),
        sa.Column("revoked_at", sa.Float(), nullable=True),
        sa.Column("used_at", sa.Float(), nullable=True),
        sa.Column("follower", sa.String(12), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
    )
    for table in UPLOADS:
        _own_key(table, ["team", "digest"])
    _own_key("datasets", ["team", "name", "version"], ["team", "name", "digest"])
    for table, indexes in INDEXES.items():
        op.add_column(table, _team())
        for name, columns in indexes.items():
            _index(table, name, ("team", *columns))


def downgrade() -> None:
    """Keeps what is of the team "local": what several teams have cannot be told apart then."""
    for table in (*INDEXES, *UPLOADS, "datasets"):
        op.execute(sa.text(f"DELETE FROM {table} WHERE team <> 'local'"))  # noqa: S608  our own names
    for table, indexes in INDEXES.items():
        for name, columns in indexes.items():
            _index(table, name, columns)
        op.drop_column(table, "team")
    for table in UPLOADS:
        _no_own_key(table, ["digest"])
    _no_own_key("datasets", ["name", "version"], ["name", "digest"])
    op.drop_table("keys")


def _team() -> sa.Column[Any]:
    return sa.Column("team", sa.String(64), nullable=False, server_default="local")


def _own_key(table: str, key: Sequence[str], unique: Sequence[str] = ()) -> None:
    with op.batch_alter_table(table) as batch:
        batch.add_column(_team())
        _keyed(batch, table, key)
        if unique:
            batch.drop_constraint(f"uq_{table}_{'_'.join(unique[1:])}", type_="unique")
            batch.create_unique_constraint(f"uq_{table}_{'_'.join(unique)}", unique)


def _no_own_key(table: str, key: Sequence[str], unique: Sequence[str] = ()) -> None:
    with op.batch_alter_table(table) as batch:
        _keyed(batch, table, key)
        if unique:
            batch.drop_constraint(f"uq_{table}_{'_'.join(('team', *unique))}", type_="unique")
            batch.create_unique_constraint(f"uq_{table}_{'_'.join(unique)}", unique)
        batch.drop_column("team")


def _keyed(batch: Any, table: str, key: Sequence[str]) -> None:
    batch.drop_constraint(f"pk_{table}", type_="primary")
    batch.create_primary_key(f"pk_{table}", key)


def _index(table: str, name: str, columns: Sequence[str]) -> None:
    op.drop_index(name, table)
    op.create_index(name, table, list(columns))
