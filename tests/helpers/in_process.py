"""The parts of a service in this process: a real record and real blobs, works done at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from service.contract.plan.assets import Places
from service.works import database
from service.works.blobs import Blobs, open_blobs
from service.works.parts import Parts
from service.works.queueing import AtOnce
from service.works.records import Records
from workers.jobs.toolbox import Toolbox
from workers.runtime import in_process

NOWHERE = Path("/nowhere")
NO_BLOBS = cast("Blobs", object())  # whoever asks fails; a store would make its folder


def parts_on(records: Records, blobs: Blobs | None = None) -> Parts:
    """For rules alone: nobody listens to the queue."""
    nobody = AtOnce(lambda key: None)
    return Parts(records, blobs or NO_BLOBS, nobody, Places(NOWHERE))


@contextmanager
def working(folder: Path, toolbox: Toolbox | None = None) -> Iterator[Parts]:
    """Whatever is submitted is computed before the answer comes. On SQLite in `folder`."""
    engine = database.connect(f"sqlite:///{folder / 'record.sqlite'}")
    database.migrate(engine)
    records, blobs = Records(engine), open_blobs(None, folder)
    places = Places(folder)
    toolbox = toolbox or Toolbox("cpu", places)
    queue = in_process.queue(records, blobs, folder / "attempts", toolbox)
    try:
        yield Parts(records, blobs, queue, toolbox.places)
    finally:
        toolbox.close()
        engine.dispose()


def on_split(pinned) -> dict[str, object]:
    """The columns of a row of `runs` that say what it is on."""
    return {
        "dataset_name": pinned.name,
        "dataset_version": pinned.version,
        "dataset_digest": pinned.digest,
        "split": pinned.split,
    }
