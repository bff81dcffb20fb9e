"""the plug-ins of captioners that workers have are kept"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "plugins",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("package", sa.String(100), nullable=False),
        sa.Column("version", sa.String(100), nullable=False),
        sa.Column("told_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_plugins")),
    )


def downgrade() -> None:
    op.drop_table("plugins")
