"""what teams have used, and who pays for a work"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "usage",
        sa.Column("team", sa.String(64), nullable=False),
        sa.Column("name", sa.String(20), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("amount", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("team", "name", "day", name=op.f("pk_usage")),
    )
    op.add_column(
        "datasets", sa.Column("bytes", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.add_column("works", sa.Column("payer", sa.String(64), nullable=True))


def downgrade() -> None:
    op.drop_column("works", "payer")
    op.drop_column("datasets", "bytes")
    op.drop_table("usage")
