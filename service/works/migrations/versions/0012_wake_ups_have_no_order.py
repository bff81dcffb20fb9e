"""wake-ups have no order: the record's turns decide which work is leased"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("outbox", schema=None) as batch_op:
        batch_op.drop_column("first")


def downgrade() -> None:
    with op.batch_alter_table("outbox", schema=None) as batch_op:
        first: sa.Column[bool] = sa.Column(
            "first", sa.Boolean(), nullable=False, server_default=sa.false()
        )
        batch_op.add_column(first)
