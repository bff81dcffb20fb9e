"""wake-ups that go first in line; attempts counted by outcome"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("outbox", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("first", sa.Boolean(), nullable=False, server_default=sa.false())
        )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempts_outcome"), ["outcome"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_attempts_outcome"))
    with op.batch_alter_table("outbox", schema=None) as batch_op:
        batch_op.drop_column("first")
