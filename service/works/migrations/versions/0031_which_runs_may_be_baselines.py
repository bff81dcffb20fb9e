"""which runs may be baselines

Of the evaluations that ended before, those without gates; the verdicts of the others were not kept.
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    false = sa.false()
    column: sa.Column[bool] = sa.Column(
        "may_be_baseline", sa.Boolean(), server_default=false, nullable=False
    )
    op.add_column("runs", column)
    runs = sa.table(
        "runs",
        sa.column("kind"),
        sa.column("status"),
        sa.column("request"),
        sa.column("may_be_baseline"),
    )
    has_none = runs.c.request.like('%"gates": []%')
    ended = runs.c.kind == "evaluation", runs.c.status == "succeeded", has_none
    op.execute(runs.update().where(*ended).values(may_be_baseline=sa.true()))


def downgrade() -> None:
    with op.batch_alter_table("runs") as batch:
        batch.drop_column("may_be_baseline")
