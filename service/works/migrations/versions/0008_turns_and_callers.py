"""works are leased by turns; runs know from where they were submitted"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# What waits already comes, in its order, before what is new, whose turns are above 0.
WAITING = """
UPDATE works SET turn = created_at - (SELECT max(created_at) FROM works)
WHERE status IN ('waiting', 'ready', 'running')
"""


def upgrade() -> None:
    op.create_table(
        "turns",
        sa.Column("queue", sa.String(length=40), nullable=False),
        sa.Column("caller", sa.String(length=100), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "caller", name=op.f("pk_turns")),
    )
    with op.batch_alter_table("works", schema=None) as batch_op:
        batch_op.add_column(sa.Column("turn", sa.Float(), nullable=False, server_default="0"))
        ordered = ["queue", "status", "turn", "created_at"]
        batch_op.create_index("ix_works_turn", ordered, unique=False)
    op.execute(WAITING)
    with op.batch_alter_table("runs", schema=None) as batch_op:
        caller = sa.Column("caller", sa.String(length=100), nullable=False, server_default="")
        batch_op.add_column(caller)
        batch_op.create_index("ix_runs_unfinished", ["finished_at", "caller"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index("ix_runs_unfinished")
        batch_op.drop_column("caller")
    with op.batch_alter_table("works", schema=None) as batch_op:
        batch_op.drop_index("ix_works_turn")
        batch_op.drop_column("turn")
    op.drop_table("turns")
