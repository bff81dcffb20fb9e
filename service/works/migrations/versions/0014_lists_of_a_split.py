"""lists of a split are read by an index"""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_OF_A_SPLIT = ("kind", "dataset_name", "split", "created_at", "id")


def upgrade() -> None:
    op.create_index("ix_runs_split", "runs", _OF_A_SPLIT)


def downgrade() -> None:
    op.drop_index("ix_runs_split", "runs")
