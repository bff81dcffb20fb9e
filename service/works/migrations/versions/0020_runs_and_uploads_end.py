"""notes of runs, who changed what, and what deletions leave to be looked at"""

import json
import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0017"
branch_labels = None
depends_on = None


RUNS = sa.table("runs", sa.column("id"), sa.column("request"))
NAMES = sa.table("run_names", sa.column("run_id"), sa.column("name"))
NAME = re.compile("[a-z]{2}_[A-Za-z0-9_-]{1,37}|sha256:[0-9a-f]{64}")  # of a run, of an upload


def _name_what_runs_name() -> None:
    connection = op.get_bind()
    for row in connection.execute(sa.select(RUNS)).all():
        request = json.loads(row.request)
        request.pop("labels", None)
        rows = [{"run_id": row.id, "name": name} for name in sorted(set(_named(request)))]
        if rows:
            connection.execute(NAMES.insert(), rows)


def _named(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for inner in value.values():
                yield from _named(inner)
        case list():
            for inner in value:
                yield from _named(inner)
        case str() if NAME.fullmatch(value):
            yield value


def upgrade() -> None:
    op.add_column("runs", sa.Column("note", sa.Text(), nullable=True))
    op.create_index("ix_works_created_at", "works", ["created_at"])
    op.create_index("ix_idempotency_run_id", "idempotency", ["run_id"])
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("team", sa.String(64), nullable=False, server_default="local"),
        sa.Column("key", sa.String(64), nullable=True),
        sa.Column("address", sa.String(100), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("object", sa.String(300), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_at", "audit", ["at"])
    op.create_index("ix_audit_action", "audit", ["team", "action", "id"])
    op.create_index("ix_audit_object", "audit", ["team", "object", "id"])
    op.create_table(
        "run_names",
        sa.Column("run_id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(71), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "name", name=op.f("pk_run_names")),
    )
    op.create_index("ix_run_names_name", "run_names", ["name"])
    _name_what_runs_name()
    op.create_table(
        "past_attempts",
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("many", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("outcome", name=op.f("pk_past_attempts")),
    )
    op.create_table(
        "loose_works",
        sa.Column("work_key", sa.String(64), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("work_key", name=op.f("pk_loose_works")),
    )
    op.create_table(
        "deleted_objects",
        sa.Column("digest", sa.String(71), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_deleted_objects")),
    )
    op.create_table(
        "given_versions",
        sa.Column("team", sa.String(64), nullable=False, server_default="local"),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("team", "name", name=op.f("pk_given_versions")),
    )


def downgrade() -> None:
    for table in (
        "given_versions",
        "deleted_objects",
        "loose_works",
        "past_attempts",
        "run_names",
        "audit",
    ):
        op.drop_table(table)
    op.drop_index("ix_works_created_at", "works")
    op.drop_index("ix_idempotency_run_id", "idempotency")
    op.drop_column("runs", "note")
