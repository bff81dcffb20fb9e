"""webhooks, and what is to be delivered to them"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def _team() -> sa.Column[Any]:
    return sa.Column("team", sa.String(64), nullable=False, server_default="local")


def _number(name: str, kind: Any = sa.Float) -> sa.Column[Any]:
    return sa.Column(name, kind(), nullable=False, server_default="0")


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(40), nullable=False),
        _team(),
        sa.Column("place", sa.String(300), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("format", sa.String(12), nullable=False),
        sa.Column("secret", sa.String(100), nullable=True),
        sa.Column("old_secret", sa.String(100), nullable=True),
        _number("old_until"),
        sa.Column("disabled_because", sa.Text(), nullable=True),
        _number("paused_until"),
        _number("failures", sa.Integer),
        sa.Column("failing_since", sa.Float(), nullable=True),
        sa.Column("delivered_at", sa.Float(), nullable=True),
        _number("lost", sa.Integer),
        sa.Column("errors", sa.Text(), nullable=False, server_default="[]"),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_index("ix_webhooks_team", "webhooks", ["team", "created_at"])
    op.create_table(
        "announcements",
        sa.Column("run_id", sa.String(40), nullable=False),
        _team(),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_announcements")),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("webhook_id", sa.String(40), nullable=False),
        _team(),
        sa.Column("event", sa.String(40), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        _number("attempts", sa.Integer),
        sa.Column("next_at", sa.Float(), nullable=False),
        _number("taken_until"),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
    )
    op.create_index("ix_deliveries_webhook_id", "deliveries", ["webhook_id", "next_at"])
    op.create_index("ix_deliveries_team", "deliveries", ["team"])
    op.create_index("ix_deliveries_next_at", "deliveries", ["next_at"])


def downgrade() -> None:
    op.drop_table("deliveries")
    op.drop_table("announcements")
    op.drop_table("webhooks")
