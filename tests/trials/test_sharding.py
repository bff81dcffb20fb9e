"""T35: columns are bit-equal however they were sharded, a retried shard included."""

import contextlib
from itertools import pairwise

import pytest
import sqlalchemy as sa

from helpers.fleet import bundle, checkpoint, digest, until, upload
from service.contract.plan.tasks import BLOCK_IMAGES, Blob, Task
from service.engine import intake
from service.engine.tables import attempts, task_rows


@pytest.mark.parametrize(
    ("blocks", "ways"),
    [(7, (1, 2, 7)), (64, (1, 2, 7, 64))],
)
@pytest.mark.slow  # however they are cut: tests/workers/inference/test_scoring.py; a lost shard is
# another attempt at the same task: test_workers.py
def test_columns_are_bit_equal_however_they_are_sharded(fleet, client, blocks, ways):
    images = blocks * BLOCK_IMAGES - 5
    tar, data = bundle(images), checkpoint(seed=1)
    client.put("/v1/datasets/large", content=tar)
    upload(client, data)
    results, lost = set(), _lost(fleet)
    for count in ways:
        whole = _columns(digest(data), digest(tar), images, blocks, count)
        with _a_shard_that_is_lost(fleet) if count == 7 else contextlib.nullcontext():
            _run(fleet, whole)
        results.add(_ended(fleet, whole))
    assert len(results) == 1
    assert _lost(fleet) == lost + 1


def _lost(fleet):
    with fleet.records.reading() as connection:
        lost = sa.select(attempts.c.outcome).where(attempts.c.outcome == "worker_lost")
        return len(connection.execute(lost).all())


def _columns(checkpoint_, dataset, images, blocks, ways):
    """The same task, in so many shards of whole blocks."""
    inputs = {"checkpoint": Blob(checkpoint_), "dataset": Blob(dataset)}
    bounds = [min(blocks * at // ways * BLOCK_IMAGES, images) for at in range(ways + 1)]
    spans = [list(span) for span in pairwise(bounds)]
    parts = tuple(Task("columns", inputs, {"split": "test", "images": span}) for span in spans)
    return Task("columns", inputs, {"split": "test"}, parts if ways > 1 else ())


def _run(fleet, whole):
    """As if it had never succeeded."""
    with fleet.records.transaction() as connection:
        connection.execute(
            task_rows.update()
            .where(task_rows.c.key.in_([task.key for task in whole.everything()]))
            .values(status="failed", result=None)
        )
        intake.add_tasks(fleet.records, connection, list(whole.everything()), deadline=1e12)


def _ended(fleet, whole):
    def result():
        with fleet.records.reading() as connection:
            query = sa.select(task_rows.c.result).where(
                task_rows.c.key == whole.key, task_rows.c.status == "done"
            )
            return connection.execute(query).scalar()

    return until(result, 120, "the columns")


@contextlib.contextmanager
def _a_shard_that_is_lost(fleet):
    """The child stands still when it is given its first shard, and dies with it."""
    child = fleet.find("workers.runtime.child", "inference")
    child.suspend()
    yield
    until(lambda: _runs_something(fleet), 20, "a running shard")
    child.kill()


def _runs_something(fleet):
    with fleet.records.reading() as connection:
        running = sa.select(task_rows.c.key).where(task_rows.c.status == "running")
        return connection.execute(running).first()
