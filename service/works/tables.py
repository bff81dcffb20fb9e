"""The tables of the database. Times are seconds since 1970 in UTC; JSON is text."""

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

checkpoints = sa.Table(
    "checkpoints",
    metadata,
    sa.Column("digest", sa.String(71), primary_key=True),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
)

datasets = sa.Table(
    "datasets",
    metadata,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("digest", sa.String(71), nullable=False),
    sa.Column("splits", sa.Text, nullable=False),
    sa.Column("features", sa.Text),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.UniqueConstraint("name", "digest"),
)

# Attempts that count: `failures` (an error of the work), `deaths` (it killed its child), `losses`
# (the attempt was ended from outside; `lost_at`: how far it was). `lease` is the current attempt's
# `id` in `attempts`. `rung_at`: when a ready work's wake-up was sent, or last seen in its queue.
work_rows = sa.Table(
    "works",
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
    sa.Index(None, "status", "lease_until"),
    sa.Index(None, "status", "rung_at"),
    sa.Index(None, "result"),
)

needs = sa.Table(
    "work_needs",
    metadata,
    sa.Column("work_key", sa.String(64), primary_key=True),
    sa.Column("needs_key", sa.String(64), primary_key=True),
    sa.Index(None, "needs_key"),
)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("work_key", sa.String(64), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("worker", sa.String(200), nullable=False),
    sa.Column("started_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("outcome", sa.Text),
    sa.Index(None, "work_key"),
    sa.Index(None, "outcome"),
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("work_key", sa.String(64), nullable=False),
    sa.Column("queue", sa.String(40), nullable=False),
    sa.Column("first", sa.Boolean, nullable=False, server_default=sa.false()),
)

# Runs that have not been told yet of a change of their work `name`.
untold = sa.Table(
    "untold",
    metadata,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("name", sa.String(80), primary_key=True),
)

# `version` counts the run's events; the dataset's version is `dataset_version`.
runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("dataset_name", sa.String(200), nullable=False),
    sa.Column("dataset_version", sa.Integer, nullable=False),
    sa.Column("dataset_digest", sa.String(71), nullable=False),
    sa.Column("split", sa.String(100), nullable=False),
    sa.Column("checkpoint", sa.String(71)),
    sa.Column("status", sa.String(12), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("warnings", sa.Text, nullable=False),
    sa.Column("snapshot", sa.Text),
    sa.Column("deadline", sa.Float, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("finished_at", sa.Float),
    sa.Index(None, "created_at"),
    sa.Index(None, "finished_at", "deadline"),
    sa.Index(None, "kind", "created_at"),
    sa.Index(None, "dataset_digest", "split"),
    sa.Index(None, "dataset_name", "dataset_version"),
)

run_works = sa.Table(
    "run_works",
    metadata,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(80), nullable=False),
    sa.Column("work_key", sa.String(64), nullable=False),
    sa.Column("cached", sa.Boolean, nullable=False),
    sa.Index(None, "work_key"),
)

# The scores that ended evaluations show: leaderboards and forecasts are made from these.
score_rows = sa.Table(
    "scores",
    metadata,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("metric", sa.String(100), primary_key=True),
    sa.Column("value", sa.Float),
    sa.Column("low", sa.Float),
    sa.Column("high", sa.Float),
    sa.Column("signature", sa.Text, nullable=False),
    sa.Index(None, "metric", "value"),
)

labels = sa.Table(
    "labels",
    metadata,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("value", sa.String(500), nullable=False),
    sa.Index(None, "name", "value"),
)

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
)
