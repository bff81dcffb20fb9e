"""The parts of a service in this process: real database and blobs; tasks are done at once."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import sqlalchemy as sa

import empty_record
from service.contract import results
from service.contract.assets import AssetFolders
from service.contract.metrics import draws as packing
from service.engine import summaries
from service.engine.blobs import Blobs, open_blobs
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.engine.tables import runs
from service.engine.task_queue import InProcessQueue
from service.runs import board_entries
from workers.jobs.toolbox import Toolbox
from workers.runtime import in_process

NOWHERE = Path("/nowhere")
NO_BLOBS = cast("Blobs", object())  # every use fails; a store would create its folder


def parts_on(records: Records, blobs: Blobs | None = None) -> ServiceParts:
    """Parts for tests of rules: tasks are queued but never performed."""
    nobody = InProcessQueue(lambda key: None)
    return ServiceParts(records, blobs or NO_BLOBS, nobody, AssetFolders(NOWHERE))


@contextmanager
def working(folder: Path, toolbox: Toolbox | None = None) -> Iterator[ServiceParts]:
    """Parts on SQLite in `folder`, with which tasks are done before a submission returns."""
    engine = empty_record.at(folder)
    records, blobs = Records(engine), open_blobs(None, folder)
    places = AssetFolders(folder)
    toolbox = toolbox or Toolbox("cpu", places)
    queue = in_process.open_queue(records, blobs, folder / "attempts", toolbox)
    try:
        yield ServiceParts(records, blobs, queue, toolbox.places)
    finally:
        toolbox.close()
        engine.dispose()


def on_split(pinned) -> dict[str, object]:
    """The columns of `runs` that name the split."""
    return {
        "dataset_name": pinned.name,
        "dataset_version": pinned.version,
        "dataset_digest": pinned.digest,
        "dataset_captions": pinned.captions,
        "split": pinned.split,
    }


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
