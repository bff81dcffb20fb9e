"""since when works are ready, and the traces that they belong to"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_READY = sa.text("status = 'ready'")
_DEATHS = sa.text("deaths > 0")


def upgrade() -> None:
    op.add_column("works", sa.Column("ready_at", sa.Float(), nullable=True))
    op.add_column("works", sa.Column("traceparent", sa.String(55), nullable=True))
    # Of works that are ready now, the last wake-up is the best that is known.
    op.execute("UPDATE works SET ready_at = rung_at WHERE status = 'ready' AND rung_at > 0")
    op.create_index(
        "ix_works_ready",
        "works",
        ["queue", "ready_at"],
        sqlite_where=_READY,
        postgresql_where=_READY,
    )
    op.create_index(
        "ix_works_deaths",
        "works",
        ["status", "queue", "deaths"],
        sqlite_where=_DEATHS,
        postgresql_where=_DEATHS,
    )


def downgrade() -> None:
    op.drop_index("ix_works_deaths", "works")
    op.drop_index("ix_works_ready", "works")
    with op.batch_alter_table("works") as batch:
        batch.drop_column("traceparent")
        batch.drop_column("ready_at")
