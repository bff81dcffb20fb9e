"""The tables of the database. Times are seconds since 1970 in UTC; JSON is text."""

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _uploaded_files(name: str) -> sa.Table:
    return sa.Table(
        name,
        metadata,
        sa.Column("team", sa.String(64), primary_key=True, server_default="local"),
        sa.Column("digest", sa.String(71), primary_key=True),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )


checkpoints = _uploaded_files("checkpoints")
brought_columns = _uploaded_files("brought_columns")  # that somebody's own code computed

# The plug-ins of captioners that workers have, each as the worker that started last has it.
plugins = sa.Table(
    "plugins",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("package", sa.String(100), nullable=False),
    sa.Column("version", sa.String(100), nullable=False),
    sa.Column("told_at", sa.Float, nullable=False),
)

# `digest` and `bytes`: of the bundle's tar. `captions`: of its captions.jsonl, stored beside it.
# `content`: of all its files, whatever tar they come in. `shown`: its pictures may be looked at.
datasets = sa.Table(
    "datasets",
    metadata,
    sa.Column("team", sa.String(64), primary_key=True, server_default="local"),
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("digest", sa.String(71), nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("captions", sa.String(71), nullable=False),
    sa.Column("content", sa.String(71), nullable=False),
    sa.Column("splits", sa.Text, nullable=False),
    sa.Column("features", sa.Text),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("shown", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.UniqueConstraint("team", "name", "digest"),
)

# Files that arrive in several requests. `received`: bytes that are durable; `length`: bytes in all,
# where they were told. `writer`: the request that has it now, by a name of its own. `judged`: its
# beginning was found right. `complete`: all bytes are there. At the end, `location` is what it
# became, or `problem` why it was refused.
uploads = sa.Table(
    "uploads",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("team", sa.String(64), nullable=False, server_default="local"),
    sa.Column("kind", sa.String(12), nullable=False),
    sa.Column("digest", sa.String(71)),
    sa.Column("name", sa.String(200)),
    sa.Column("told", sa.Text, nullable=False),
    sa.Column("length", sa.BigInteger, nullable=False),
    sa.Column("received", sa.BigInteger, nullable=False),
    sa.Column("judged", sa.Boolean, nullable=False),
    sa.Column("complete", sa.Boolean, nullable=False),
    sa.Column("writer", sa.String(32)),
    # The multipart upload in the store, where the client sends it parts, and their bytes there.
    sa.Column("staging", sa.Text),
    sa.Column("staged", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("location", sa.String(400)),
    sa.Column("problem", sa.Text),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("touched_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Index(None, "team", "created_at"),
    sa.Index(None, "expires_at"),
)

# The task that makes a picture small, by the SHA-256 of the picture. `looked_at`: when somebody
# last did, to a day.
thumbnail_rows = sa.Table(
    "thumbnails",
    metadata,
    sa.Column("picture", sa.String(64), primary_key=True),
    sa.Column("task_key", sa.String(64), nullable=False),
    sa.Column("looked_at", sa.Float, nullable=False),
    sa.Index(None, "task_key", "looked_at"),
)

# Attempts that count: `failures` (an error of the task), `deaths` (it killed its child), `losses`
# (the attempt was ended from outside; `lost_at`: how far it was). `lease` is the current attempt's
# `id` in `attempts`. `rung_at`: when a ready task's wake-up was sent. `turn`: of the ready tasks of
# a queue, that with the smallest one is leased first (`turns.py`). `short`: may be
# performed beside another one. `ready_at`: since when it has been ready, or when it last was.
# `traceparent`: the span of the request that asked for it, if requests are traced (`tracing`).
# `caller` asked for it first: its seconds count to the caller's turns, and to the quota of the team
# `payer`. `price`: how many its turn has counted already. `party` is charged for what tasks take
# beyond their prices; `charged`: as much of that as the turn has counted (`turns.py`).
task_rows = sa.Table(
    "tasks",
    metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(40), nullable=False),
    sa.Column("queue", sa.String(40), nullable=False),
    sa.Column("inputs", sa.Text, nullable=False),
    sa.Column("parts", sa.Text, nullable=False),
    sa.Column("parameters", sa.Text, nullable=False),
    sa.Column("status", sa.String(12), nullable=False),
    sa.Column("waiting_for", sa.Integer, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("deaths", sa.Integer, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
    sa.Column("losses", sa.Integer, nullable=False, server_default="0"),
    sa.Column("lost_at", sa.String(60)),
    sa.Column("lease", sa.Integer),
    sa.Column("worker", sa.String(200)),
    sa.Column("lease_until", sa.Float),
    sa.Column("deadline", sa.Float, nullable=False),
    sa.Column("done", sa.Integer, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("result", sa.String(71)),
    sa.Column("summary", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("started_at", sa.Float),
    sa.Column("finished_at", sa.Float),
    sa.Column("rung_at", sa.Float, nullable=False, server_default="0"),
    sa.Column("summary_id", sa.Integer),
    sa.Column("turn", sa.Float, nullable=False, server_default="0"),
    sa.Column("short", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("ready_at", sa.Float),
    sa.Column("traceparent", sa.String(55)),
    sa.Column("payer", sa.String(64)),
    sa.Column("caller", sa.String(100)),
    sa.Column("price", sa.Float, nullable=False, server_default="0"),
    sa.Column("party", sa.String(100)),
    sa.Column("charged", sa.Float, nullable=False, server_default="0"),
    sa.Index("ix_tasks_party", "queue", "party", "status", "turn"),
    sa.Index("ix_tasks_turn", "queue", "status", "turn", "created_at", "short"),
    sa.Index(None, "status", "lease_until"),
    sa.Index(None, "status", "rung_at"),
    # The longest ready ones, and those that have killed their child: both are few.
    sa.Index(
        "ix_tasks_ready",
        "queue",
        "ready_at",
        sqlite_where=sa.text("status = 'ready'"),
        postgresql_where=sa.text("status = 'ready'"),
    ),
    sa.Index(
        "ix_tasks_deaths",
        "status",
        "queue",
        "deaths",
        sqlite_where=sa.text("deaths > 0"),
        postgresql_where=sa.text("deaths > 0"),
    ),
    sa.Index(None, "result"),
    sa.Index(None, "created_at"),
)

# The last turn that each caller has in a queue, and (caller "") the queue's clock.
turns = sa.Table(
    "turns",
    metadata,
    sa.Column("queue", sa.String(40), primary_key=True),
    sa.Column("caller", sa.String(100), primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("charged", sa.Float, nullable=False, server_default="0"),
)

# Long summaries: those of hundreds of scores, packed. A row never changes; tasks, runs that have
# ended and events name it.
summary_rows = sa.Table(
    "summaries",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("packed", sa.LargeBinary, nullable=False),
)

# What a task needs that is not done yet.
needs = sa.Table(
    "task_needs",
    metadata,
    sa.Column("task_key", sa.String(64), primary_key=True),
    sa.Column("needs_key", sa.String(64), primary_key=True),
    sa.Index(None, "needs_key"),
)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("task_key", sa.String(64), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("worker", sa.String(200), nullable=False),
    sa.Column("started_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("outcome", sa.Text),
    # Only attempts that have not ended are searched by their task.
    sa.Index(
        None,
        "task_key",
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    ),
    sa.Index(None, "outcome"),
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("task_key", sa.String(64), nullable=False),
    sa.Column("queue", sa.String(40), nullable=False),
)

# Runs that have not been told yet of a change of their task `name`.
untold = sa.Table(
    "untold",
    metadata,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("name", sa.String(80), primary_key=True),
)

# `version` counts the run's events and the changes of its labels and note; the dataset's version is
# `dataset_version`, and `dataset_captions` its `captions`, by which runs on the same captions are
# found. `caller` is the address that submitted it. At the end, `snapshot` has the tasks as they
# were, and `event_log` the events: both packed. `may_be_baseline`: an evaluation that succeeded,
# and whose gates passed or that has none; only such a one is found by a label or as the best.
# `collapsed`: most images have one caption. `falls`: those of a checkpoint of a training; null:
# none.
runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("team", sa.String(64), nullable=False, server_default="local"),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("dataset_name", sa.String(200), nullable=False),
    sa.Column("dataset_version", sa.Integer, nullable=False),
    sa.Column("dataset_digest", sa.String(71), nullable=False),
    sa.Column("dataset_captions", sa.String(71), nullable=False, server_default=""),
    sa.Column("split", sa.String(100), nullable=False),
    sa.Column("checkpoint", sa.String(71)),
    sa.Column("status", sa.String(12), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("warnings", sa.Text, nullable=False),
    sa.Column("deadline", sa.Float, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("finished_at", sa.Float),
    sa.Column("snapshot", sa.LargeBinary),
    sa.Column("event_log", sa.LargeBinary),
    sa.Column("caller", sa.String(100), nullable=False, server_default=""),
    sa.Column("note", sa.Text),
    sa.Column("may_be_baseline", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("collapsed", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("falls", sa.Text),
    # Lists, in their order: all of a kind, of a dataset, of a split, with a status.
    sa.Index("ix_runs_kind", "team", "kind", "created_at", "id"),
    sa.Index("ix_runs_dataset", "team", "kind", "dataset_name", "created_at", "id"),
    sa.Index("ix_runs_split", "team", "kind", "dataset_name", "split", "created_at", "id"),
    sa.Index("ix_runs_status", "team", "kind", "status", "created_at", "id"),
    # Those on a split, by when they were submitted and by when they ended.
    sa.Index("ix_runs_submitted", "team", "kind", "dataset_captions", "split", "created_at"),
    sa.Index("ix_runs_ended", "team", "kind", "dataset_captions", "split", "finished_at"),
    sa.Index("ix_runs_checkpoint", "team", "checkpoint", "dataset_digest", "split"),
    sa.Index(None, "finished_at", "deadline"),
    sa.Index("ix_runs_unfinished", "finished_at", "caller"),
)

run_tasks = sa.Table(
    "run_tasks",
    metadata,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(80), nullable=False),
    sa.Column("task_key", sa.String(64), nullable=False),
    sa.Column("cached", sa.Boolean, nullable=False),
    # The run's team, so that whether a team has asked for a task is found at once. Its name is not
    # `team`: a run's tasks are read through their run, and counted whatever team asked.
    sa.Column("asked_by", sa.String(64), nullable=False, server_default="local"),
    sa.Index(None, "task_key", "asked_by"),
)

# The runs and uploads that a run's request names, or was compared with.
run_names = sa.Table(
    "run_names",
    metadata,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("name", sa.String(71), primary_key=True),
    sa.Index(None, "name"),
)

# A metric on a split, of scores with one signature. `listed` counts its scores that are listed.
boards = sa.Table(
    "boards",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("team", sa.String(64), nullable=False, server_default="local"),
    sa.Column("dataset_name", sa.String(200), nullable=False),
    sa.Column("dataset_captions", sa.String(71), nullable=False),
    sa.Column("split", sa.String(100), nullable=False),
    sa.Column("metric", sa.String(100), nullable=False),  # its full name, not an alias
    sa.Column("signature", sa.Text, nullable=False),
    sa.Column("listed", sa.Integer, nullable=False),
    sa.Index("ix_boards_split", "team", "dataset_captions", "split", "metric"),
)

# The scores that ended evaluations show. `place` orders them, the best first. `listed`: in
# histories, which leave out canceled evaluations, those of a part of the split, and the same score
# by an alias. `first`: on leaderboards, which show equal scores of one checkpoint once; `same`
# finds them. `draws_id`: its row in `draws`.
score_rows = sa.Table(
    "scores",
    metadata,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("metric", sa.String(100), primary_key=True),  # as it was requested
    sa.Column("board_id", sa.Integer, nullable=False),
    sa.Column("value", sa.Float),
    sa.Column("low", sa.Float),
    sa.Column("high", sa.Float),
    sa.Column("place", sa.Float),
    sa.Column("listed", sa.Boolean, nullable=False),
    sa.Column("first", sa.Boolean, nullable=False),
    sa.Column("same", sa.BigInteger),
    sa.Column("created_at", sa.Float, nullable=False),  # the run's
    sa.Column("draws_id", sa.Integer),
    sa.Index(
        "ix_scores_best",
        *("board_id", "first", "place", "created_at", "run_id", "low", "high", "draws_id"),
    ),
    sa.Index("ix_scores_latest", "board_id", "listed", "created_at", "run_id"),
    sa.Index(None, "same"),
    sqlite_with_rowid=False,
)

# How a task's score came out when its images were drawn anew, packed (`contract.metrics.draws`).
draws = sa.Table(
    "draws",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("task_key", sa.String(64), nullable=False),
    sa.Column("metric", sa.String(100), nullable=False),
    sa.Column("packed", sa.LargeBinary, nullable=False),
    sa.Index(None, "task_key"),
)

labels = sa.Table(
    "labels",
    metadata,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("value", sa.String(500), nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),  # the run's
    sa.Index("ix_labels_latest", "name", "value", "created_at", "run_id"),
    sqlite_with_rowid=False,
)

# The events of runs that have not ended.
events = sa.Table(
    "events",
    metadata,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(12), nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
)

idempotency = sa.Table(
    "idempotency",
    metadata,
    sa.Column("caller", sa.String(100), primary_key=True),
    sa.Column("key", sa.String(300), primary_key=True),
    sa.Column("request", sa.String(64), nullable=False),
    sa.Column("run_id", sa.String(40)),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Index(None, "run_id"),
)

# Who may ask: `hash` is the SHA-256 of the key's text, which is kept nowhere. It ends at
# `expires_at` or when it is revoked; `follower` is the key that replaces it.
keys = sa.Table(
    "keys",
    metadata,
    sa.Column("id", sa.String(12), primary_key=True),
    sa.Column("team", sa.String(64), nullable=False),
    sa.Column("scope", sa.String(12), nullable=False),
    sa.Column("name", sa.String(100), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float),
    sa.Column("revoked_at", sa.Float),
    sa.Column("used_at", sa.Float),
    sa.Column("follower", sa.String(12)),
    sa.Column("labels", sa.Text),
    sa.Column("subject", sa.String(32)),
    sa.Index("ix_keys_subject", "subject", "expires_at"),
)

# Tokens of CI jobs that were exchanged for a key, until they have expired: each once.
oidc_tokens = sa.Table(
    "oidc_tokens",
    metadata,
    sa.Column("token", sa.String(64), primary_key=True),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Index("ix_oidc_tokens_expires_at", "expires_at"),
)

# What teams have used on a day (since 1970, in UTC).
usage = sa.Table(
    "usage",
    metadata,
    sa.Column("team", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(20), primary_key=True),
    sa.Column("day", sa.Integer, primary_key=True),
    sa.Column("amount", sa.Float, nullable=False),
)

# Who changed what: `key` is the id of the key that asked, `object` names what was changed.
audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("team", sa.String(64), nullable=False, server_default="local"),
    sa.Column("key", sa.String(64)),
    sa.Column("address", sa.String(100), nullable=False),
    sa.Column("action", sa.String(40), nullable=False),
    sa.Column("object", sa.String(300), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Index(None, "at"),
    sa.Index("ix_audit_action", "team", "action", "id"),
    sa.Index("ix_audit_object", "team", "object", "id"),
    sqlite_autoincrement=True,  # a cursor stays right after the last row was deleted
)

# How many attempts ended in each way, of those whose rows were deleted.
past_attempts = sa.Table(
    "past_attempts",
    metadata,
    sa.Column("outcome", sa.Text, primary_key=True),
    sa.Column("many", sa.Integer, nullable=False),
)

# Tasks that a deleted run had, until somebody has looked whether others need them.
loose_tasks = sa.Table(
    "loose_tasks",
    metadata,
    sa.Column("task_key", sa.String(64), primary_key=True),
    sa.Column("since", sa.Float, nullable=False),
)

# Objects that somebody has deleted: tasks that are done no longer keep what they have read.
deleted_objects = sa.Table(
    "deleted_objects",
    metadata,
    sa.Column("digest", sa.String(71), primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
)

# The last version that a dataset had when some of them were deleted: a number is given once.
given_versions = sa.Table(
    "given_versions",
    metadata,
    sa.Column("team", sa.String(64), primary_key=True, server_default="local"),
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
)

# When something happened last that an operator asks for (`fleet_status.py`).
moment_rows = sa.Table(
    "moments",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
)

# Webhooks of a team (`service/webhooks/registry.py`). `place`: the service's own URL, as its
# maker knows it. `url` and the secrets let others speak in our name: they are in no answer and no
# log. `paused_until`: nothing is sent before; `failures` in a row, `failing_since` the first.
webhooks = sa.Table(
    "webhooks",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("team", sa.String(64), nullable=False, server_default="local"),
    sa.Column("place", sa.String(300), nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("events", sa.Text, nullable=False),
    sa.Column("format", sa.String(12), nullable=False),
    sa.Column("secret", sa.String(100)),
    sa.Column("old_secret", sa.String(100)),
    sa.Column("old_until", sa.Float, nullable=False, server_default="0"),
    sa.Column("disabled_because", sa.Text),
    sa.Column("paused_until", sa.Float, nullable=False, server_default="0"),
    sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
    sa.Column("failing_since", sa.Float),
    sa.Column("delivered_at", sa.Float),
    sa.Column("lost", sa.Integer, nullable=False, server_default="0"),
    sa.Column("errors", sa.Text, nullable=False, server_default="[]"),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Index("ix_webhooks_team", "team", "created_at"),
)

# Runs that have ended and of which webhooks are to be told: written in the transaction that ends
# them.
announcements = sa.Table(
    "announcements",
    metadata,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("team", sa.String(64), nullable=False, server_default="local"),
    sa.Column("at", sa.Float, nullable=False),
)

# Messages that have not arrived. `id` is the message's own, the same at each attempt; the next one
# is at `next_at`; `taken_until`: some process is at it.
deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("webhook_id", sa.String(40), nullable=False),
    sa.Column("team", sa.String(64), nullable=False, server_default="local"),
    sa.Column("event", sa.String(40), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_at", sa.Float, nullable=False),
    sa.Column("taken_until", sa.Float, nullable=False, server_default="0"),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Index("ix_deliveries_webhook_id", "webhook_id", "next_at"),
    sa.Index("ix_deliveries_team", "team"),
    sa.Index("ix_deliveries_next_at", "next_at"),
)
