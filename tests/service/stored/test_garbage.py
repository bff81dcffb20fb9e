import hashlib
import os
import threading

import pytest

from helpers import stored_records
from helpers.stored_records import take_task
from service.contract.plan.tasks import Blob, Task
from service.engine import intake, leases
from service.stored import checkpoints, garbage

NAMED = ("checkpoint", "dataset", "captions", "result", "sent")
OLD = -60.0  # a grace period that ends a minute from now: everything is old


def _add(records, *tasks):
    with records.transaction() as connection:
        intake.add_tasks(records, connection, tasks, deadline=1e12)


def test_what_a_row_names_or_is_young_stays_and_the_rest_goes(on_either, blobs, monkeypatch):
    monkeypatch.setattr(garbage, "_BATCH", 3)
    kept = {name: blobs.put(name.encode()) for name in NAMED}
    lost = [blobs.put(b"came too late"), blobs.put(b"never recorded")]
    checkpoints.add(on_either, kept["checkpoint"], 10, {})
    stored_records.add_version(on_either, "d", kept["dataset"], captions=kept["captions"])
    task = Task("bleu", {"captions": Blob(kept["sent"])}, {})
    _add(on_either, task)
    leases.finish_attempt(on_either, take_task(on_either, task.key, "w"), kept["result"], {})
    assert garbage.collect_garbage(on_either, blobs, grace=60) == 0
    assert garbage.collect_garbage(on_either, blobs, OLD) == 2
    assert all(blobs.has(digest) for digest in kept.values())
    assert not any(blobs.has(digest) for digest in lost)


@pytest.mark.long
@pytest.mark.parametrize("times", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_a_collection_never_takes_what_is_being_recorded(on_either, tmp_path, times):
    """Trial 16: the same objects put and named again and again beside a collector."""
    from service.engine.blobs import open_blobs

    blobs = open_blobs(None, tmp_path)
    objects = [number.to_bytes(4, "big") for number in range(times)]
    for data in objects:
        os.utime(blobs.path(blobs.put(data)), (0, 0))
    over = threading.Event()

    def collect():
        while not over.is_set():
            garbage.collect_garbage(on_either, blobs, grace=30)

    collector = threading.Thread(target=collect)
    collector.start()
    try:
        for data in objects:
            digest = blobs.put(data)
            _add(on_either, Task("bleu", {"captions": Blob(digest)}, {}))
            assert blobs.has(digest)
    finally:
        over.set()
        collector.join()
    assert all(blobs.has(f"sha256:{hashlib.sha256(data).hexdigest()}") for data in objects)
