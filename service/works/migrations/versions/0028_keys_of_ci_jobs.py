"""keys of CI jobs, and the tokens that were exchanged for them"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("keys", sa.Column("labels", sa.Text(), nullable=True))
    op.add_column("keys", sa.Column("subject", sa.String(32), nullable=True))
    op.create_index("ix_keys_subject", "keys", ["subject", "expires_at"])
    op.create_table(
        "oidc_tokens",
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_oidc_tokens")),
    )
    op.create_index("ix_oidc_tokens_expires_at", "oidc_tokens", ["expires_at"])


def downgrade() -> None:
    """Keys of jobs are deleted: without their labels, they could call themselves anything."""
    op.drop_table("oidc_tokens")
    op.execute(sa.text("DELETE FROM keys WHERE subject IS NOT NULL"))
    op.drop_index("ix_keys_subject", "keys")
    with op.batch_alter_table("keys") as batch:
        batch.drop_column("subject")
        batch.drop_column("labels")
