"""what ends attempts is told apart; wake-ups are noted; runs that have to be told of a change"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_COUNTS = ("failures", "losses")


def upgrade() -> None:
    with op.batch_alter_table("works", schema=None) as batch_op:
        for name in _COUNTS:
            batch_op.add_column(sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
        batch_op.add_column(sa.Column("lost_at", sa.String(length=60), nullable=True))
        batch_op.add_column(sa.Column("lease", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("rung_at", sa.Float(), nullable=False, server_default="0"))
        batch_op.create_index(
            batch_op.f("ix_works_status_rung_at"), ["status", "rung_at"], unique=False
        )
    op.create_table(
        "untold",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "name", name=op.f("pk_untold")),
    )


def downgrade() -> None:
    op.drop_table("untold")
    with op.batch_alter_table("works", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_works_status_rung_at"))
        for name in ("rung_at", "lease", "lost_at", *_COUNTS):
            batch_op.drop_column(name)
