"""pictures of datasets may be shown, and works make them small"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        shown: sa.Column[bool] = sa.Column(
            "shown", sa.Boolean(), nullable=False, server_default=sa.false()
        )
        batch_op.add_column(shown)
    op.create_table(
        "thumbnails",
        sa.Column("picture", sa.String(64), nullable=False),
        sa.Column("work_key", sa.String(64), nullable=False),
        sa.Column("looked_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("picture", name=op.f("pk_thumbnails")),
    )
    op.create_index(
        op.f("ix_thumbnails_work_key_looked_at"), "thumbnails", ["work_key", "looked_at"]
    )


def downgrade() -> None:
    op.drop_table("thumbnails")
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        batch_op.drop_column("shown")
