"""Records of tests: empty ones, parts of a service on them, and rows that are entered by hand."""

import atexit
import base64
import functools
import json
import shutil
import tempfile
from pathlib import Path
from typing import cast

import sqlalchemy as sa

from service.contract import results
from service.contract.assets import AssetFolders
from service.contract.formats.bundles.files import ContentDigests
from service.contract.metrics import draws as packing
from service.engine import database, leases, summaries
from service.engine.blobs import Blobs
from service.engine.leases import Lease
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.engine.tables import labels, run_tasks, runs, task_rows
from service.engine.task_queue import InProcessQueue
from service.runs import board_entries, training_falls
from service.stored import dataset_versions
from service.stored.datasets import PinnedSplit

NOWHERE = Path("/nowhere")
NO_BLOBS = cast("Blobs", object())  # every use fails; a store would create its folder
REVISION = "9998"  # of `add_revision`
PINNED = PinnedSplit("d", 1, "sha256:d", "sha256:c", "test", ("test",), 1000, None, 5000)
NINE_IMAGES = {"splits": {"test": {"images": 9, "references": 45}}, "features": None}
_MIGRATION = '''"""a column more"""

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{last}"


def upgrade():
    op.add_column("runs", sa.Column("added_later", sa.Text))
'''


@functools.cache
def _model() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="prescore-record-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    engine = database.open_database(f"sqlite:///{folder / 'record.sqlite'}")
    database.migrate_database(engine)
    engine.dispose()
    return folder / "record.sqlite"


def open_empty_record(folder: Path) -> sa.Engine:
    """An engine on `record.sqlite` in `folder`. Where there is none, it becomes a copy of an empty
    one: to make its tables takes longer than most tests do.
    """
    path = folder / "record.sqlite"
    if not path.exists():
        shutil.copyfile(_model(), path)
    return database.open_database(f"sqlite:///{path}")


def add_revision(folder: Path, last: str, monkeypatch) -> None:
    """From now on, this version's record has a column more than that of the revision `last`."""
    shutil.copytree(database._MIGRATIONS, folder)
    text = _MIGRATION.format(revision=REVISION, last=last)
    (folder / "versions" / f"{REVISION}_a_column_more.py").write_text(text, "utf-8")
    monkeypatch.setattr(database, "_MIGRATIONS", folder)


def take_task(records: Records, key: str, worker: str) -> Lease | None:
    """An attempt at a certain task: workers take the one whose turn it is."""
    with records.transaction() as connection:
        return leases.begin_attempt(records, connection, key, worker)


def name_digest(text):
    return f"sha256:{text * 64}" if len(text) == 1 else text


def add_version(records, name, digest, facts=None, captions=None):
    """Add a version of a dataset, which has no bundle; its captions have the digest of its bundle,
    or that of `captions`. It has nine images, unless `facts` tell otherwise. One digit is a digest.
    """
    digest, captions = (name_digest(each) for each in (digest, captions or digest))
    return dataset_versions.add_dataset_version(
        records, name, digest, facts or NINE_IMAGES, ContentDigests(digest, captions)
    )


def parts_on(records: Records, blobs: Blobs | None = None) -> ServiceParts:
    """Parts for tests of rules: tasks are queued but never performed."""
    nobody = InProcessQueue(lambda key: None)
    return ServiceParts(records, blobs or NO_BLOBS, nobody, AssetFolders(NOWHERE))


def on_split(pinned) -> dict[str, object]:
    """The columns of `runs` that name the split."""
    return {
        "dataset_name": pinned.name,
        "dataset_version": pinned.version,
        "dataset_digest": pinned.digest,
        "dataset_captions": pinned.captions,
        "split": pinned.split,
    }


def enter_run(connection, identity, pinned, request=None, marks=None, **columns) -> None:
    """An evaluation that has succeeded, unless `columns` tell otherwise; `marks` are its labels."""
    row = {"kind": "evaluation", "status": "succeeded", "version": 1, "warnings": "[]"}
    row |= {"deadline": 1e12, "created_at": 1.0, **on_split(pinned), **columns}
    row |= {"id": identity, "request": json.dumps(request or {})}
    connection.execute(runs.insert().values(row))
    for name, value in (marks or {}).items():
        mark = {"run_id": identity, "name": name, "value": value}
        connection.execute(labels.insert().values(**mark, created_at=row["created_at"]))


def enter_scores(connection, identity, scores, signature, draws=None) -> None:
    """Scores (value, low, high) by metric, as the end of an evaluation enters them; `draws`: of
    resamples, by metric.
    """
    packed = {
        metric: base64.b64encode(packing.pack_draws(each)).decode()
        for metric, each in (draws or {}).items()
    }
    summaries.store_draws(connection, f"key of {identity}", {"draws": packed})
    run = connection.execute(sa.select(runs).where(runs.c.id == identity)).one()
    shown = {
        metric: results.build_score(metric, value, signature, None if low is None else (low, high))
        for metric, (value, low, high) in scores.items()
    }
    partial = json.loads(run.request).get("subset", False)
    named = summaries.find_draws(connection, [f"key of {identity}"])
    board_entries.enter_shown_scores(connection, run, shown, is_partial=partial, draws=named)


def enter_trainings(records, pinned, many=3, signature="x|v:1") -> None:
    """Trainings of six checkpoints each, of which METEOR tells no order at half of the steps."""
    with records.transaction() as connection:
        for number in range(many):
            for step in range(1, 7):
                value = 0.2 + number / 10 + step / 100
                scores = {"cider_d": (value, value - 0.01, value + 0.01)}
                scores["meteor"] = (0.5 + (step > 3) * number / 10, None, None)
                identity, marks = f"ev_{number}{step}", {"run": f"r{number}", "step": str(step)}
                enter_run(connection, identity, pinned, {}, marks, created_at=step)
                enter_scores(connection, identity, scores, signature)


def enter_pregen(connection, identity, scores, signature) -> None:
    """The task of an evaluation that has these pre-gen scores, value or (value, low, high)."""
    bounds = {name: one[1:] for name, one in scores.items() if isinstance(one, tuple)}
    values = {name: one[0] if name in bounds else one for name, one in scores.items()}
    summary = {"scores": values, "intervals": bounds, "signature": signature}
    enter_task(connection, identity, "pregen", summary)


def enter_task(connection, identity, name, summary=None, **columns) -> None:
    """A task of an evaluation, which is done, unless `columns` tell otherwise."""
    row = {"key": f"{name} of {identity}", "kind": name, "queue": "any", "status": "done"}
    row |= dict.fromkeys(("inputs", "parameters"), "{}") | {"parts": "[]", "created_at": 1.0}
    row |= dict.fromkeys(("waiting_for", "attempt", "deaths", "done", "total"), 0)
    row |= {"deadline": 1e12, **(summaries.store_summary(connection, summary) if summary else {})}
    connection.execute(task_rows.insert().values({**row, **columns}))
    named = {"run_id": identity, "position": 0, "name": name, "task_key": row["key"]}
    connection.execute(run_tasks.insert().values(**named, cached=False))


def enter_checkpoint(connection, identity, pinned, marks, scores, signature="x|v:1", **columns):
    """A checkpoint of a training, with its falls and those of the trainings beside it. `scores`:
    (value, error) by metric.
    """
    bounds = {
        name: (one, one - 1.96 * error, one + 1.96 * error) for name, (one, error) in scores.items()
    }
    enter_run(connection, identity, pinned, {}, marks, **{"finished_at": 1.0, **columns})
    enter_scores(connection, identity, bounds, signature)
    training_falls.settle_groups(connection, identity)
