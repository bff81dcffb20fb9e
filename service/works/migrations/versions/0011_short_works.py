"""short works are known, since they are performed beside long ones"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

ORDERED = ["queue", "status", "turn", "created_at"]


def upgrade() -> None:
    with op.batch_alter_table("works", schema=None) as batch_op:
        short: sa.Column[bool] = sa.Column(
            "short", sa.Boolean(), nullable=False, server_default=sa.false()
        )
        batch_op.add_column(short)
        batch_op.drop_index("ix_works_turn")
        batch_op.create_index("ix_works_turn", [*ORDERED, "short"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("works", schema=None) as batch_op:
        batch_op.drop_index("ix_works_turn")
        batch_op.create_index("ix_works_turn", ORDERED, unique=False)
        batch_op.drop_column("short")
