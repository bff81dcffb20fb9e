"""one table for all kinds of runs, found by kind and by the dataset's own columns"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# The prefixes of ids and the kinds of runs, as they were when this was written.
KINDS = {
    "ev_": "evaluation",
    "cp_": "comparison",
    "pb_": "probes",
    "ln_": "training",
    "st_": "study",
}
# Their column `evaluation_id` becomes `run_id`.
RENAMED = ("scores", "labels", "events", "idempotency")
_KEPT = (
    ("id", sa.String(40)),
    ("request", sa.Text),
    ("dataset_name", sa.String(200)),
    ("checkpoint", sa.String(71)),
    ("status", sa.String(12)),
    ("version", sa.Integer),
    ("warnings", sa.Text),
    ("snapshot", sa.Text),
    ("deadline", sa.Float),
    ("created_at", sa.Float),
    ("finished_at", sa.Float),
)
_OPTIONAL = ("checkpoint", "snapshot", "finished_at")
_DATASET = (
    ("dataset_version", sa.Integer),
    ("dataset_digest", sa.String(71)),
    ("split", sa.String(100)),
)


def upgrade() -> None:
    runs = _table("runs", ("kind", sa.String(20)), *_KEPT, *_DATASET)
    for columns in (
        ("created_at",),
        ("finished_at", "deadline"),
        ("kind", "created_at"),
        ("dataset_digest", "split"),
        ("dataset_name", "dataset_version"),
    ):
        op.create_index(f"ix_runs_{'_'.join(columns)}", "runs", list(columns))
    before = _known("evaluations", "dataset", *(name for name, _ in _KEPT))
    kind = sa.case(KINDS, value=sa.func.substr(before.c.id, 1, 3))
    connection = op.get_bind()
    for text in connection.execute(sa.select(before.c.dataset).distinct()).scalars().all():
        dataset = json.loads(text)
        said = {
            "kind": kind,
            "dataset_version": sa.literal(int(dataset["version"].removeprefix("v"))),
            "dataset_digest": sa.literal(dataset["digest"]),
            "split": sa.literal(dataset["split"]),
        }
        _copy(before, runs, before.c.dataset == text, said)
    op.drop_table("evaluations")
    _move_works("evaluation_works", "evaluation_id", "run_works", "run_id")
    for table in RENAMED:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN evaluation_id TO run_id")


def downgrade() -> None:
    evaluations = _table("evaluations", *_KEPT, ("dataset", sa.Text))
    for columns in (("created_at",), ("finished_at", "deadline")):
        op.create_index(f"ix_evaluations_{'_'.join(columns)}", "evaluations", list(columns))
    found = _known("runs", *(name for name, _ in (*_KEPT, *_DATASET)))
    pinned = (found.c.dataset_name, *(found.c[name] for name, _ in _DATASET))
    connection = op.get_bind()
    for name, version, digest, split in connection.execute(sa.select(*pinned).distinct()).all():
        said = {"name": name, "version": f"v{version}", "digest": digest, "split": split}
        text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        these = sa.and_(*map(sa.ColumnElement.__eq__, pinned, (name, version, digest, split)))
        _copy(found, evaluations, these, {"dataset": sa.literal(text)})
    op.drop_table("runs")
    _move_works("run_works", "run_id", "evaluation_works", "evaluation_id")
    for table in RENAMED:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN run_id TO evaluation_id")


def _move_works(old: str, old_id: str, new: str, new_id: str) -> None:
    own = (("name", sa.String(80)), ("work_key", sa.String(64)), ("cached", sa.Boolean))
    made = op.create_table(
        new,
        sa.Column(new_id, sa.String(40), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        *(sa.Column(name, kind, nullable=False) for name, kind in own),
        sa.PrimaryKeyConstraint(new_id, "position", name=f"pk_{new}"),
    )
    op.create_index(f"ix_{new}_work_key", new, ["work_key"])
    rest = ("position", *(name for name, _ in own))
    before = _known(old, old_id, *rest)
    rows = sa.select(before.c[old_id], *(before.c[name] for name in rest))
    op.get_bind().execute(made.insert().from_select([new_id, *rest], rows))
    op.drop_table(old)


def _table(name: str, *columns: tuple[str, Any]) -> sa.Table:
    return op.create_table(
        name,
        *(sa.Column(each, kind, nullable=each in _OPTIONAL) for each, kind in columns),
        sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
    )


def _known(name: str, *columns: str) -> sa.TableClause:
    return sa.table(name, *map(sa.column, columns))


def _copy(
    before: sa.TableClause,
    after: sa.Table,
    these: sa.ColumnElement[bool],
    said: dict[str, sa.ColumnElement[object]],
) -> None:
    kept = [name for name, _ in _KEPT]
    rows = sa.select(*(before.c[name] for name in kept), *said.values()).where(these)
    op.get_bind().execute(after.insert().from_select([*kept, *said], rows))
