"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:  # noqa: PLR0915  a statement for each table and index
    op.create_table(
        "announcements",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("team", sa.String(length=64), server_default="local", nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_announcements"),
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.Float()),
        sa.Column("outcome", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
    )
    op.create_index("ix_attempts_outcome", "attempts", ["outcome"])
    op.create_index(
        "ix_attempts_task_key",
        "attempts",
        ["task_key"],
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("team", sa.String(length=64), server_default="local", nullable=False),
        sa.Column("key", sa.String(length=64)),
        sa.Column("address", sa.String(length=100), nullable=False),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("object", sa.String(length=300), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_action", "audit", ["team", "action", "id"])
    op.create_index("ix_audit_at", "audit", ["at"])
    op.create_index("ix_audit_object", "audit", ["team", "object", "id"])
    op.create_table(
        "boards",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("team", sa.String(length=64), server_default="local", nullable=False),
        sa.Column("dataset_name", sa.String(length=200), nullable=False),
        sa.Column("dataset_captions", sa.String(length=71), nullable=False),
        sa.Column("split", sa.String(length=100), nullable=False),
        sa.Column("metric", sa.String(length=100), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("listed", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_boards"),
    )
    op.create_index("ix_boards_split", "boards", ["team", "dataset_captions", "split", "metric"])
    op.create_table(
        "brought_columns",
        sa.Column("team", sa.String(length=64), server_default="local", nullable=False),
        sa.Column("digest", sa.String(length=71), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("team", "digest", name="pk_brought_columns"),
    )
    op.create_table(
        "checkpoints",
        sa.Column("team", sa.String(length=64), server_default="local", nullable=False),
        sa.Column("digest", sa.String(length=71), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("team", "digest", name="pk_checkpoints"),
    )
    op.create_table(
        "datasets",
        sa.Column("team", sa.String(length=64), server_default="local", nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=71), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("captions", sa.String(length=71), nullable=False),
        sa.Column("content", sa.String(length=71), nullable=False),
        sa.Column("splits", sa.Text(), nullable=False),
        sa.Column("features", sa.Text()),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("shown", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("team", "name", "version", name="pk_datasets"),
        sa.UniqueConstraint("team", "name", "digest", name="uq_datasets_team_name_digest"),
    )
    op.create_table(
        "deleted_objects",
        sa.Column("digest", sa.String(length=71), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_deleted_objects"),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("webhook_id", sa.String(length=40), nullable=False),
        sa.Column("team", sa.String(length=64), server_default="local", nullable=False),
        sa.Column("event", sa.String(length=40), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_at", sa.Float(), nullable=False),
        sa.Column("taken_until", sa.Float(), server_default="0", nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
    )
    op.create_index("ix_deliveries_next_at", "deliveries", ["next_at"])
    op.create_index("ix_deliveries_team", "deliveries", ["team"])
    op.create_index("ix_deliveries_webhook_id", "deliveries", ["webhook_id", "next_at"])
    op.create_table(
        "draws",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("metric", sa.String(length=100), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_draws"),
    )
    op.create_index("ix_draws_task_key", "draws", ["task_key"])
    op.create_table(
        "events",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "version", name="pk_events"),
    )
    op.create_table(
        "given_versions",
        sa.Column("team", sa.String(length=64), server_default="local", nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("team", "name", name="pk_given_versions"),
    )
    op.create_table(
        "idempotency",
        sa.Column("caller", sa.String(length=100), nullable=False),
        sa.Column("key", sa.String(length=300), nullable=False),
        sa.Column("request", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=40)),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("caller", "key", name="pk_idempotency"),
    )
    op.create_index("ix_idempotency_run_id", "idempotency", ["run_id"])
    op.create_table(
        "keys",
        sa.Column("id", sa.String(length=12), nullable=False),
        sa.Column("team", sa.String(length=64), nullable=False),
        sa.Column("scope", sa.String(length=12), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float()),
        sa.Column("revoked_at", sa.Float()),
        sa.Column("used_at", sa.Float()),
        sa.Column("follower", sa.String(length=12)),
        sa.Column("labels", sa.Text()),
        sa.Column("subject", sa.String(length=32)),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
    )
    op.create_index("ix_keys_subject", "keys", ["subject", "expires_at"])
    op.create_table(
        "labels",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("value", sa.String(length=500), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "name", name="pk_labels"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_labels_latest", "labels", ["name", "value", "created_at", "run_id"])
    op.create_table(
        "loose_tasks",
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("task_key", name="pk_loose_tasks"),
    )
    op.create_table(
        "moments",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_moments"),
    )
    op.create_table(
        "oidc_tokens",
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("token", name="pk_oidc_tokens"),
    )
    op.create_index("ix_oidc_tokens_expires_at", "oidc_tokens", ["expires_at"])
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("queue", sa.String(length=40), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
    )
    op.create_table(
        "past_attempts",
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("many", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("outcome", name="pk_past_attempts"),
    )
    op.create_table(
        "plugins",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("package", sa.String(length=100), nullable=False),
        sa.Column("version", sa.String(length=100), nullable=False),
        sa.Column("told_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_plugins"),
    )
    op.create_table(
        "run_names",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=71), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "name", name="pk_run_names"),
    )
    op.create_index("ix_run_names_name", "run_names", ["name"])
    op.create_table(
        "run_tasks",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("cached", sa.Boolean(), nullable=False),
        sa.Column("asked_by", sa.String(length=64), server_default="local", nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", name="pk_run_tasks"),
    )
    op.create_index("ix_run_tasks_task_key_asked_by", "run_tasks", ["task_key", "asked_by"])
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("team", sa.String(length=64), server_default="local", nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("dataset_name", sa.String(length=200), nullable=False),
        sa.Column("dataset_version", sa.Integer(), nullable=False),
        sa.Column("dataset_digest", sa.String(length=71), nullable=False),
        sa.Column("dataset_captions", sa.String(length=71), server_default="", nullable=False),
        sa.Column("split", sa.String(length=100), nullable=False),
        sa.Column("checkpoint", sa.String(length=71)),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("warnings", sa.Text(), nullable=False),
        sa.Column("deadline", sa.Float(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("finished_at", sa.Float()),
        sa.Column("snapshot", sa.LargeBinary()),
        sa.Column("event_log", sa.LargeBinary()),
        sa.Column("caller", sa.String(length=100), server_default="", nullable=False),
        sa.Column("note", sa.Text()),
        sa.Column("may_be_baseline", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("collapsed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("falls", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    op.create_index("ix_runs_checkpoint", "runs", ["team", "checkpoint", "dataset_digest", "split"])
    op.create_index("ix_runs_dataset", "runs", ["team", "kind", "dataset_name", "created_at", "id"])
    op.create_index(
        "ix_runs_ended", "runs", ["team", "kind", "dataset_captions", "split", "finished_at"]
    )
    op.create_index("ix_runs_finished_at_deadline", "runs", ["finished_at", "deadline"])
    op.create_index("ix_runs_kind", "runs", ["team", "kind", "created_at", "id"])
    op.create_index(
        "ix_runs_split", "runs", ["team", "kind", "dataset_name", "split", "created_at", "id"]
    )
    op.create_index("ix_runs_status", "runs", ["team", "kind", "status", "created_at", "id"])
    op.create_index(
        "ix_runs_submitted", "runs", ["team", "kind", "dataset_captions", "split", "created_at"]
    )
    op.create_index("ix_runs_unfinished", "runs", ["finished_at", "caller"])
    op.create_table(
        "scores",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("metric", sa.String(length=100), nullable=False),
        sa.Column("board_id", sa.Integer(), nullable=False),
        sa.Column("value", sa.Float()),
        sa.Column("low", sa.Float()),
        sa.Column("high", sa.Float()),
        sa.Column("place", sa.Float()),
        sa.Column("listed", sa.Boolean(), nullable=False),
        sa.Column("first", sa.Boolean(), nullable=False),
        sa.Column("same", sa.BigInteger()),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("draws_id", sa.Integer()),
        sa.PrimaryKeyConstraint("run_id", "metric", name="pk_scores"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_scores_best",
        "scores",
        ["board_id", "first", "place", "created_at", "run_id", "low", "high", "draws_id"],
    )
    op.create_index("ix_scores_latest", "scores", ["board_id", "listed", "created_at", "run_id"])
    op.create_index("ix_scores_same", "scores", ["same"])
    op.create_table(
        "summaries",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_summaries"),
    )
    op.create_table(
        "task_needs",
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("needs_key", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("task_key", "needs_key", name="pk_task_needs"),
    )
    op.create_index("ix_task_needs_needs_key", "task_needs", ["needs_key"])
    op.create_table(
        "tasks",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("queue", sa.String(length=40), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("parts", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("waiting_for", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("deaths", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("losses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lost_at", sa.String(length=60)),
        sa.Column("lease", sa.Integer()),
        sa.Column("worker", sa.String(length=200)),
        sa.Column("lease_until", sa.Float()),
        sa.Column("deadline", sa.Float(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("result", sa.String(length=71)),
        sa.Column("summary", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("started_at", sa.Float()),
        sa.Column("finished_at", sa.Float()),
        sa.Column("rung_at", sa.Float(), server_default="0", nullable=False),
        sa.Column("summary_id", sa.Integer()),
        sa.Column("turn", sa.Float(), server_default="0", nullable=False),
        sa.Column("short", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("ready_at", sa.Float()),
        sa.Column("traceparent", sa.String(length=55)),
        sa.Column("payer", sa.String(length=64)),
        sa.Column("caller", sa.String(length=100)),
        sa.Column("price", sa.Float(), server_default="0", nullable=False),
        sa.Column("party", sa.String(length=100), nullable=True),
        sa.Column("charged", sa.Float(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_tasks"),
    )
    op.create_index("ix_tasks_created_at", "tasks", ["created_at"])
    op.create_index(
        "ix_tasks_deaths",
        "tasks",
        ["status", "queue", "deaths"],
        sqlite_where=sa.text("deaths > 0"),
        postgresql_where=sa.text("deaths > 0"),
    )
    op.create_index(
        "ix_tasks_ready",
        "tasks",
        ["queue", "ready_at"],
        sqlite_where=sa.text("status = 'ready'"),
        postgresql_where=sa.text("status = 'ready'"),
    )
    op.create_index("ix_tasks_result", "tasks", ["result"])
    op.create_index("ix_tasks_status_lease_until", "tasks", ["status", "lease_until"])
    op.create_index("ix_tasks_status_rung_at", "tasks", ["status", "rung_at"])
    op.create_index("ix_tasks_party", "tasks", ["queue", "party", "status", "turn"])
    op.create_index("ix_tasks_turn", "tasks", ["queue", "status", "turn", "created_at", "short"])
    op.create_table(
        "thumbnails",
        sa.Column("picture", sa.String(length=64), nullable=False),
        sa.Column("task_key", sa.String(length=64), nullable=False),
        sa.Column("looked_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("picture", name="pk_thumbnails"),
    )
    op.create_index("ix_thumbnails_task_key_looked_at", "thumbnails", ["task_key", "looked_at"])
    op.create_table(
        "turns",
        sa.Column("queue", sa.String(length=40), nullable=False),
        sa.Column("caller", sa.String(length=100), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("charged", sa.Float(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("queue", "caller", name="pk_turns"),
    )
    op.create_table(
        "untold",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "name", name="pk_untold"),
    )
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("team", sa.String(length=64), server_default="local", nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("digest", sa.String(length=71)),
        sa.Column("name", sa.String(length=200)),
        sa.Column("told", sa.Text(), nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("judged", sa.Boolean(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("writer", sa.String(length=32)),
        sa.Column("staging", sa.Text()),
        sa.Column("staged", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("location", sa.String(length=400)),
        sa.Column("problem", sa.Text()),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("touched_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_uploads"),
    )
    op.create_index("ix_uploads_expires_at", "uploads", ["expires_at"])
    op.create_index("ix_uploads_team_created_at", "uploads", ["team", "created_at"])
    op.create_table(
        "usage",
        sa.Column("team", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=20), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("amount", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("team", "name", "day", name="pk_usage"),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("team", sa.String(length=64), server_default="local", nullable=False),
        sa.Column("place", sa.String(length=300), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("format", sa.String(length=12), nullable=False),
        sa.Column("secret", sa.String(length=100)),
        sa.Column("old_secret", sa.String(length=100)),
        sa.Column("old_until", sa.Float(), server_default="0", nullable=False),
        sa.Column("disabled_because", sa.Text()),
        sa.Column("paused_until", sa.Float(), server_default="0", nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failing_since", sa.Float()),
        sa.Column("delivered_at", sa.Float()),
        sa.Column("lost", sa.Integer(), server_default="0", nullable=False),
        sa.Column("errors", sa.Text(), server_default="[]", nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
    )
    op.create_index("ix_webhooks_team", "webhooks", ["team", "created_at"])
