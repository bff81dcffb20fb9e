"""Short tasks beside long ones, which nothing cuts: the first scores of others do not wait."""

import json
import time

import numpy as np
import pytest
import sqlalchemy as sa

from helpers.executors import FakeExecutor
from helpers.fleet import bundle_of, checkpoint, until, upload
from helpers.submissions import submit
from service.contract.plan.tasks import Task
from service.engine import intake, task_queue
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.engine.tables import task_rows
from service.engine.task_queue import RedisQueue
from workers.runtime import short_tasks
from workers.runtime.attempt_files import AttemptFiles
from workers.runtime.memory_share import MemoryShare
from workers.runtime.short_tasks import ShortTaskRunner, ShortTasks
from workers.runtime.warm_child import ChildAnswer

LARGE = 20_000  # images
MOST = {"beam": 80, "min_words": 900, "max_words": 1000}  # 15 s an image: what is accepted


@pytest.fixture
def records(engine):
    return Records(engine)


@pytest.fixture
def queue(server):
    connection = task_queue.connect_redis(server.url)
    connection.flushall()
    return RedisQueue(connection)


@pytest.fixture
def standing_by(records, queue, tmp_path):
    """Makes what a worker of metrics has for short tasks."""

    def make(*, answers=True, held=0):
        def receive(child, _):
            child.result.write_text("scores")
            return ChildAnswer({"summary": {}}) if answers else None

        workplace = AttemptFiles(open_blobs(None, tmp_path), tmp_path / "attempts")
        having = records, queue, workplace, "metrics@here:1-0"
        memory = MemoryShare(1000, 1000, tmp_path / "memory", having[-1])
        runner = ShortTaskRunner(*having, lambda: FakeExecutor(receive, held), memory)
        return ShortTasks(runner, records, queue, ["metrics", "parsing"])

    return make


def _add(records, queue, **prices):
    tasks = [Task("study", {}, {"name": name}, price=price) for name, price in prices.items()]
    with records.transaction() as connection:
        intake.add_tasks(records, connection, tasks, time.time() + 100)
    queue.flush(records)


def _states(records):
    """Name, status, whether it is short, and failures of each task."""
    columns = (task_rows.c[name] for name in ("parameters", "status", "short", "failures"))
    with records.reading() as connection:
        rows = connection.execute(sa.select(*columns).order_by(task_rows.c.turn)).all()
    return [(json.loads(row.parameters)["name"], *row[1:]) for row in rows]


def test_short_tasks_are_performed_beside_and_take_as_many_wake_ups(records, queue, standing_by):
    """T66: the long one is left to the worker, with one wake-up for it."""
    _add(records, queue, short=0.5, other=3.9, long=9.0)
    standing = standing_by()
    standing.look()
    left = [("short", "done", True, 0), ("other", "done", True, 0), ("long", "ready", False, 0)]
    until(lambda: _states(records) == left, 10, "the short tasks' ends")
    until(lambda: queue.waiting()["metrics"] == 1, 5, "their wake-ups to be taken")
    standing.close()


@pytest.mark.parametrize(("seconds", "held"), [(0.2, 0), (60, 2000)])
def test_what_takes_more_than_a_short_work_may_is_left_to_the_worker(
    records, queue, standing_by, monkeypatch, seconds, held
):
    """T66: too much time or memory is no failure, and is not tried in this way again."""
    monkeypatch.setattr(short_tasks, "MOST_SECONDS", seconds)
    _add(records, queue, wrong=0.5)
    standing = standing_by(answers=False, held=held)
    standing.look()
    until(lambda: _states(records) == [("wrong", "ready", False, 0)], 10, "it to be handed back")
    standing.look()
    standing.close()
    assert _states(records) == [("wrong", "ready", False, 0)]


def test_a_worker_that_stops_hands_its_short_work_back(records, queue, standing_by, monkeypatch):
    """T24: at once, and it stays short."""
    monkeypatch.setattr("workers.runtime.runner.GRACE_SECONDS", 0.1)
    _add(records, queue, never=0.5)
    standing = standing_by(answers=False)
    standing.look()
    until(lambda: _states(records) == [("never", "running", True, 0)], 10, "it to be begun")
    standing.close()
    assert _states(records) == [("never", "ready", True, 0)]


def _task(client, identity, name):
    tasks = client.get(f"/v1/evaluations/{identity}").json()["tasks"]
    return next(task for task in tasks if task["name"] == name)


def _decoded(client, identity):
    return _task(client, identity, "captions")["progress"]["done"]


@pytest.mark.slow
def test_prefix_scores_come_while_one_image_of_a_long_search_is_decoded(fleet):
    """T66: of the longest searches that are accepted, on one worker. They came after 15 s, or 60
    where others used the cores, and come after 3.
    """
    with fleet.client_at("127.0.0.1") as one, fleet.client_at("127.0.0.2") as other:
        large = upload(one, checkpoint(seed=900, size=512, words=10_000))
        small = upload(other, checkpoint(seed=901))
        searches = [
            submit(
                one,
                checkpoint=large,
                pregen=[],
                postgen=["rouge_l"],
                decoding={**MOST, "beam": beam},
            )
            for beam in (80, 79, 78)
        ]
        begun = until(lambda: _decoded(one, searches[0]), 120, "the search's first image")
        began = time.monotonic()
        quick = submit(other, checkpoint=small, postgen=[])
        until(lambda: _task(other, quick, "prefix")["status"] == "done", 20, "prefix scores")
        print(f"prefix scores after {time.monotonic() - began:.1f} s")
        assert _decoded(one, searches[0]) == begun
        assert _task(one, searches[0], "captions")["attempts"] == 1


WORDS = [*"abcdefgh", "man", "woman", "dog", "cat", "sits", "runs", "table", "children", "street"]


def _captions(seed, images):
    """Sentences of words that METEOR knows, by image."""
    words = np.random.default_rng(seed).choice(WORDS, (images, 11)).tolist()
    return {f"{place}.jpg": [" ".join(row)] for place, row in enumerate(words)}


def _score(client, dataset, metric):
    """Submit captions that differ from the dataset's."""
    images = {"large": LARGE, "small": 40}[dataset]
    captions = [{"image": name, "caption": text} for name, (text,) in _captions(1, images).items()]
    asked = {"captions": captions, "dataset": f"{dataset}/test", "tokenizer": "none"}
    return submit(client, **asked, postgen=[metric])


@pytest.mark.slow
def test_bleu_comes_while_meteor_of_many_captions_is_computed(fleet):
    """T66: on one worker. It came after 41 s, when METEOR had ended, and comes after 3 to 7."""
    with fleet.client_at("127.0.0.1") as one, fleet.client_at("127.0.0.2") as other:
        for name, images in (("large", LARGE), ("small", 40)):
            data = bundle_of(_captions(0, images))
            assert one.put(f"/v1/datasets/{name}", content=data).status_code in (200, 201)
        many = _score(one, "large", "meteor")
        until(lambda: _task(one, many, "meteor")["status"] == "running", 120, "METEOR")
        began = time.monotonic()
        few = _score(other, "small", "bleu")
        until(lambda: _task(other, few, "bleu")["status"] == "done", 60, "BLEU")
        print(f"BLEU after {time.monotonic() - began:.1f} s")
        assert _task(one, many, "meteor")["status"] == "running"
