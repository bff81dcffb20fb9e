"""labels of the usual probes, by which health finds them"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# As they were when this was written.
PROBED, MARK = "probed ", "usual"
PROBES = {"human", "frequent", "rare", "swap", "random", "single"}
USUAL = {
    "probes": sorted(PROBES),
    "metrics": ["bleu", "rouge_l", "cider_d", "meteor"],
    "tokenizer": "ptb",
    "evaluation": None,
    "captions": None,
    "options": {"frequent": None, "swaps": None, "objective": "bleu_4"},
}
SAME = ("tokenizer", "evaluation", "captions", "options")

runs = sa.table("runs", *map(sa.column, ("id", "kind", "request", "created_at")))
labels = sa.table("labels", *map(sa.column, ("run_id", "name", "value", "created_at")))


def upgrade() -> None:
    connection = op.get_bind()
    query = sa.select(runs.c.id, runs.c.request, runs.c.created_at).where(runs.c.kind == "probes")
    marks = [
        {"run_id": row.id, "name": name, "value": MARK, "created_at": row.created_at}
        for row in connection.execute(query).all()
        for name in marked(json.loads(row.request))
    ]
    if marks:
        connection.execute(labels.insert(), marks)


def downgrade() -> None:
    own = labels.c.name.startswith(PROBED), labels.c.value == MARK
    of_probes = sa.select(runs.c.id).where(runs.c.kind == "probes")
    op.get_bind().execute(labels.delete().where(*own, labels.c.run_id.in_(of_probes)))


def marked(request: dict[str, Any]) -> list[str]:
    """The names of a request's labels; none for probes that are not the usual ones."""
    kept = {**USUAL, **request}
    whole = set(kept["probes"]) >= PROBES
    if not whole or any(kept[name] != USUAL[name] for name in SAME):
        return []
    return [f"{PROBED}{name}" for name in dict.fromkeys(kept["metrics"])]
