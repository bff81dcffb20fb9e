"""clients send files to the store themselves"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("uploads", sa.Column("staging", sa.Text(), nullable=True))
    staged = sa.Column("staged", sa.BigInteger(), server_default="0", nullable=False)
    op.add_column("uploads", staged)


def downgrade() -> None:
    with op.batch_alter_table("uploads") as batch:
        batch.drop_column("staged")
        batch.drop_column("staging")
