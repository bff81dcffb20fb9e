"""draws of scores, by which leaderboards tell two systems apart"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

BEST = ["board_id", "first", "place", "created_at", "run_id", "low", "high"]


def upgrade() -> None:
    op.create_table(
        "draws",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("work_key", sa.String(64), nullable=False),
        sa.Column("metric", sa.String(100), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_draws")),
    )
    op.create_index("ix_draws_work_key", "draws", ["work_key"])
    op.add_column("scores", sa.Column("draws_id", sa.Integer(), nullable=True))
    op.drop_index("ix_scores_best", "scores")
    op.create_index("ix_scores_best", "scores", [*BEST, "draws_id"])


def downgrade() -> None:
    op.drop_index("ix_scores_best", "scores")
    op.drop_column("scores", "draws_id")
    op.create_index("ix_scores_best", "scores", BEST)
    op.drop_index("ix_draws_work_key", "draws")
    op.drop_table("draws")
