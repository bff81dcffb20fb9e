"""columns that somebody's own code computed are kept"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "brought_columns",
        sa.Column("digest", sa.String(71), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_brought_columns")),
    )


def downgrade() -> None:
    op.drop_table("brought_columns")
