"""uploads that go on after a cut"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("team", sa.String(64), nullable=False, server_default="local"),
        sa.Column("kind", sa.String(12), nullable=False),
        sa.Column("digest", sa.String(71), nullable=True),
        sa.Column("name", sa.String(200), nullable=True),
        sa.Column("told", sa.Text(), nullable=True),
        sa.Column("length", sa.BigInteger(), nullable=True),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("judged", sa.Boolean(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("writer", sa.String(32), nullable=True),
        sa.Column("location", sa.String(400), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("touched_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uploads")),
    )
    op.create_index("ix_uploads_team_created_at", "uploads", ["team", "created_at"])
    op.create_index("ix_uploads_expires_at", "uploads", ["expires_at"])


def downgrade() -> None:
    op.drop_index("ix_uploads_expires_at", "uploads")
    op.drop_index("ix_uploads_team_created_at", "uploads")
    op.drop_table("uploads")
