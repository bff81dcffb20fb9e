"""a run's works tell its team"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    team = sa.Column("asked_by", sa.String(64), server_default="local", nullable=False)
    op.add_column("run_works", team)
    op.execute(
        sa.text(
            "UPDATE run_works SET asked_by = runs.team FROM runs"
            " WHERE runs.id = run_works.run_id AND runs.team <> 'local'"
        )
    )
    op.drop_index("ix_run_works_work_key", "run_works")
    op.create_index("ix_run_works_work_key_asked_by", "run_works", ["work_key", "asked_by"])


def downgrade() -> None:
    op.drop_index("ix_run_works_work_key_asked_by", "run_works")
    op.create_index("ix_run_works_work_key", "run_works", ["work_key"])
    with op.batch_alter_table("run_works") as batch:
        batch.drop_column("asked_by")
