"""Trials of queue and workers (T17, T21-T32, T47): real processes are killed, stopped, starved."""

import itertools
import json
import signal
import threading
import time
from types import MappingProxyType

import obstore
import psutil
import pytest
import sqlalchemy as sa
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from helpers.fleet import LONG, Fleet, bundle, checkpoint, until, until_ended, upload
from service.engine.tables import attempts, run_tasks, task_rows

SEEDS = itertools.count(500)
LARGE = {"words": 20_000, "size": 128}  # for it, one image's search is not short


def _post(client, sizes=MappingProxyType({}), **more):
    identity = upload(client, checkpoint(seed=next(SEEDS), **sizes))
    request = {"checkpoint": identity, "dataset": "tiny/test", "postgen": [], **more}
    return client.post("/v1/evaluations", json=request).json()["id"]


def _long(client, **more):
    """Captions that take a while: only the decoding, no pre-gen scores."""
    return _post(client, pregen=[], postgen=["rouge_l"], decoding=LONG, **more)


def _get(client, identity):
    return client.get(f"/v1/evaluations/{identity}").json()


def _task(client, identity, name):
    return next(task for task in _get(client, identity)["tasks"] if task["name"] == name)


def _damage(fleet, identity):
    """A stored object has another first byte wherever it is kept."""
    files = fleet.blob_files(identity)
    data = files[0].read_bytes()
    data = bytes([data[0] ^ 1]) + data[1:]
    if fleet.bucket is not None:
        name = identity.removeprefix("sha256:")
        obstore.put(fleet.bucket, f"objects/{name[:2]}/{name[2:]}", data)
    for file in files:
        file.write_bytes(data)


def _until_running(client, identity, name="captions"):
    until(lambda: _task(client, identity, name)["status"] == "running", 20, f"{name} is running")


def _outcomes(fleet, identity, name):
    """How the attempts at a task, shards included, have ended (None: not yet), in their order."""
    with fleet.records.reading() as connection:
        row = connection.execute(
            sa.select(task_rows.c.key, task_rows.c.parts)
            .join(run_tasks, run_tasks.c.task_key == task_rows.c.key)
            .where(run_tasks.c.run_id == identity, run_tasks.c.name == name)
        ).one()
        query = sa.select(attempts.c.outcome).where(
            attempts.c.task_key.in_([row.key, *json.loads(row.parts)])
        )
        return connection.execute(query.order_by(attempts.c.id)).scalars().all()


def _cancel(client, identity):
    assert client.post(f"/v1/evaluations/{identity}/cancel").status_code == 202


def test_a_child_that_is_killed_is_replaced_and_its_task_done_again(fleet):
    """T21."""
    with fleet.client() as client:
        identity = _long(client)
        _until_running(client, identity)
        fleet.find("workers.runtime.child", "inference").kill()
        began = time.monotonic()
        until(lambda: _task(client, identity, "captions")["attempts"] == 2, 20, "a second attempt")
        assert time.monotonic() - began < 20
        assert _outcomes(fleet, identity, "captions")[0] == "worker_lost"
        _cancel(client, identity)
        assert until_ended(client, identity, 40)["status"] == "canceled"


@pytest.mark.slow  # 11 s; the rule alone: tests/workers/runtime/test_runner.py
def test_a_record_that_cannot_be_written_for_11_seconds_ends_no_attempt(fleet):
    """T22: a writer waits 10 s at most, and a lease ends after 12."""
    with fleet.client() as client:
        identity = _long(client)
        _until_running(client, identity)
        child = fleet.find("workers.runtime.child", "inference")
        with fleet.records.transaction() as connection:
            if fleet.records.is_file:
                threading.Event().wait(11)
            else:
                connection.execute(sa.text("SELECT pg_sleep(11)"))
        until(lambda: _task(client, identity, "captions")["progress"], 20, "progress")
        assert child.is_running()
        assert set(_outcomes(fleet, identity, "captions")) <= {"done", None}
        _cancel(client, identity)


@pytest.mark.slow  # four children import torch; the rule: tests/service/engine/test_records.py
def test_a_task_that_kills_two_children_is_quarantined(fleet):
    """T28: its child dies each time; others wait less than twice as long as behind a sound one."""
    with fleet.client() as client:
        client.put("/v1/datasets/one", content=bundle(1))
        sound = _long(client, dataset="one/test", sizes=LARGE)  # one shard
        _until_running(client, sound)
        behind_a_sound_one = _seconds_until_scored(client)
        until_ended(client, sound, 60)
        identity = _long(client, dataset="one/test", sizes=LARGE)
        for attempt in (1, 2):
            until(
                lambda attempt=attempt: _task(client, identity, "captions")["attempts"] == attempt,
                20,
                "another attempt",
            )
            _until_running(client, identity)
            if attempt == 1:
                waiting = _post(client)
            # As a fault in native code ends it; SIGKILL would come from outside.
            fleet.find("workers.runtime.child", "inference").send_signal(signal.SIGSEGV)
            began = time.monotonic()
        ended = until_ended(client, identity, 40)
        assert ended["status"] == "failed"
        assert ended["error"]["code"] == "worker_lost"
        assert _outcomes(fleet, identity, "captions") == ["worker_lost", "worker_lost"]
        assert until_ended(client, waiting, 40)["status"] == "succeeded"
        behind_the_bad_one = time.monotonic() - began
        restart = 8.0  # a new child imports torch; two cores, shared
        assert behind_the_bad_one < 2 * behind_a_sound_one + restart
        assert until_ended(client, _post(client), 40)["status"] == "succeeded"


def _seconds_until_scored(client):
    began = time.monotonic()
    assert until_ended(client, _post(client), 40)["status"] == "succeeded"
    return time.monotonic() - began


def test_a_redis_that_does_not_answer_keeps_nobody_waiting(fleet):
    """T26, smaller: what is accepted meanwhile is done afterwards."""
    if not fleet.embedded:
        pytest.skip("the Redis at hand is not ours to stop")
    server = fleet.find("redis-server")
    with fleet.client() as client:
        data = upload(client, checkpoint(seed=next(SEEDS)))
        server.suspend()
        try:
            began = time.monotonic()
            request = {"checkpoint": data, "dataset": "tiny/test", "postgen": []}
            answer = client.post("/v1/evaluations", json=request)
            assert answer.status_code == 202
            assert time.monotonic() - began < 2
            began = time.monotonic()
            assert client.get("/readyz").json()["findings"]
            assert time.monotonic() - began < 2
        finally:
            server.resume()
        assert until_ended(client, answer.json()["id"], 40)["status"] == "succeeded"


def _attempts(fleet, since):
    """(the task, its attempt) of metrics that were begun after that time, in their order."""
    query = (
        sa.select(attempts.c.task_key, attempts.c.attempt)
        .join(task_rows, task_rows.c.key == attempts.c.task_key)
        .where(task_rows.c.queue == "metrics", attempts.c.started_at > since)
        .order_by(attempts.c.id)
    )
    with fleet.records.reading() as connection:
        return connection.execute(query).all()


def _outputs(number):
    captions = [{"image": f"{at}.jpg", "caption": f"w{at} n{number}"} for at in range(40)]
    return {"captions": captions, "dataset": "tiny/test", "postgen": ["bleu"], "tokenizer": "none"}


def test_what_a_killed_worker_had_begun_comes_before_what_waits(fleet):
    """T22: its child is dead within a second; the next worker begins with it, and not with others
    that may take long.
    """
    with fleet.client() as client:
        first = client.post("/v1/evaluations", json=_outputs(next(SEEDS))).json()["id"]
        assert until_ended(client, first, 40)["status"] == "succeeded"  # its references are there
        child = fleet.find("workers.runtime.child", "metrics")
        child.suspend()
        posted = [
            client.post("/v1/evaluations", json=_outputs(next(SEEDS))).json()["id"]
            for _ in range(4)
        ]
        names = (task["name"] for task in _get(client, posted[0])["tasks"])
        name = next(name for name in names if name.startswith("bleu"))
        _until_running(client, posted[0], name)
        fleet.find("workers", "worker", "metrics").kill()
        killed = time.time()
        until(lambda: _dead(child), 1, "the child's death")
        begun = until(lambda: _attempts(fleet, since=killed), 20, "another attempt")
        assert begun[0].attempt == 2
        for identity in posted:
            assert until_ended(client, identity, 40)["status"] == "succeeded"


def test_a_task_past_its_deadline_is_ended_with_timeout(fleet):
    """T29."""
    with fleet.client() as client:
        identity = _long(client, deadline=3)
        ended = until_ended(client, identity, seconds=3 + 10)
        assert ended["status"] == "failed"
        assert ended["error"]["code"] == "timeout"
        until(lambda: _idle(fleet), 10, "an idle inference child")


def _dead(process):
    """Gone, or waiting for somebody to take note."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _idle(fleet):
    """Nothing computes for inference; there may be no child until the next task comes."""
    children = fleet.running("workers.runtime.child", "inference")
    try:
        return all(child.cpu_percent(0.2) < 50 for child in children)
    except psutil.Error:
        return True


def test_canceling_ends_a_running_task_soon_and_for_good(fleet):
    """T31."""
    with fleet.client() as client:
        identity = _long(client)
        _until_running(client, identity)
        began = time.monotonic()
        _cancel(client, identity)
        assert until_ended(client, identity, 5)["status"] == "canceled"
        assert time.monotonic() - began < 5
        until(lambda: _idle(fleet), 5, "an idle inference child")
        _cancel(client, identity)
        assert _get(client, identity)["status"] == "canceled"


def test_prefix_scores_overtake_long_decodes(fleet):
    """T32: behind ten of them, on one worker."""
    with fleet.client() as client:
        decodes = [_long(client) for _ in range(10)]
        _until_running(client, decodes[0])
        quick = _post(client)
        until(lambda: _task(client, quick, "prefix")["status"] == "done", 20, "prefix scores")
        assert _task(client, decodes[0], "captions")["status"] == "running"
        assert _task(client, decodes[9], "captions")["status"] == "ready"
        for identity in reversed(decodes):  # a cancel of what runs ends a child
            _cancel(client, identity)


def _counted(client, name):
    """A number that /metrics tells."""
    lines = client.get("/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[-1])


def test_damaged_columns_are_computed_again(fleet):
    """T17: a byte flipped; another evaluation still gets the right scores."""
    with fleet.client() as client:
        identity = _post(client)
        before = until_ended(client, identity, 40)
        with fleet.records.transaction() as connection:
            keys = dict(
                connection.execute(
                    sa.select(run_tasks.c.name, run_tasks.c.task_key).where(
                        run_tasks.c.run_id == identity
                    )
                ).all()
            )
            result = connection.execute(
                sa.select(task_rows.c.result).where(task_rows.c.key == keys["columns"])
            ).scalar_one()
            connection.execute(  # as a newer code version of `pregen` would have it
                task_rows.update().where(task_rows.c.key == keys["pregen"]).values(status="failed")
            )
        _damage(fleet, result)
        request = {"checkpoint": before["checkpoint"], "dataset": "tiny/test", "postgen": []}
        again = client.post("/v1/evaluations", json=request).json()["id"]
        after = until_ended(client, again, 40)
        assert after["status"] == "succeeded"
        assert after["scores"] == before["scores"]
        assert _outcomes(fleet, again, "columns") == ["done", "done"]
        damaged = 'prescore_attempts_total{outcome="an input was damaged"}'
        assert _counted(client, damaged) >= 1


def test_what_others_put_into_our_queues_is_not_executed(fleet, tmp_path):
    """T47."""
    canary = tmp_path / "canary"
    connection = fleet.redis
    queue = Queue("inference-now", connection=connection, serializer=JSONSerializer)
    queue.enqueue("os.system", f"touch {canary}")
    queue.enqueue("os.system", f"touch {canary}", job_id="0" * 64)
    pickled = Queue("inference-now", connection=connection)
    pickled.enqueue("os.system", f"touch {canary}")
    connection.rpush("rq:queue:inference-now", "not even a job")
    Job.create("os.system", args=[str(canary)], connection=connection, id="x").save()
    with fleet.client() as client:
        assert until_ended(client, _post(client), 40)["status"] == "succeeded"
        until(lambda: connection.llen("rq:queue:inference-now") == 0, 5, "an empty queue")
        counted = "prescore_foreign_jobs_total"  # answers are kept for 5 s
        until(lambda: _counted(client, counted) >= 2, 15, "foreign jobs that are counted")
    assert not canary.exists()


def test_a_stopped_worker_hands_its_work_back(fleet):
    """T24: one SIGTERM; nothing is left running, and the next worker goes on."""
    with fleet.client() as client:
        identity = _long(client)
        _until_running(client, identity)
        worker = fleet.find("workers", "worker", "inference")
        before = len(_exit_codes(fleet))
        worker.terminate()
        until(lambda: _dead(worker), 10, "its end")
        assert _outcomes(fleet, identity, "captions")[-1] in ("done", "handed back")
        until(lambda: len(_exit_codes(fleet)) > before, 10, "the supervisor's word on it")
        assert _exit_codes(fleet)[-1] == 0
        _goes_on(fleet, client, identity)
        _cancel(client, identity)


@pytest.mark.slow  # one more child imports torch; told once: the trial before
@pytest.mark.parametrize("together", [False, True])
def test_a_worker_that_is_told_twice_or_with_its_child_leaves_nothing_running(fleet, together):
    """T24: the second SIGTERM does not wait for the shard; or one to worker and child at once, as a
    terminal or a container sends it.
    """
    with fleet.client() as client:
        identity = _long(client)
        _until_running(client, identity)
        worker = fleet.find("workers", "worker", "inference")
        other = fleet.find("workers.runtime.child", "inference") if together else worker
        worker.terminate()
        other.terminate()
        until(lambda: _dead(worker) and _dead(other), 10 if together else 5, "their end")
        _goes_on(fleet, client, identity)


def _exit_codes(fleet):
    """Of inference workers that have ended, as the supervisor logged them."""
    lines = [json.loads(line) for line in fleet.log.read_text().splitlines() if line[:1] == "{"]
    ended = [line for line in lines if line["event"] == "ended" and line["name"] == "inference"]
    return [line["code"] for line in ended]


def _goes_on(fleet, client, identity):
    """Whatever was cut short was told to the record, and is begun again."""
    before = len(_outcomes(fleet, identity, "captions"))
    until(lambda: len(_outcomes(fleet, identity, "captions")) > before, 20, "another attempt")
    open_ones = [at for at in _outcomes(fleet, identity, "captions") if at is None]
    assert len(open_ones) <= 1


@pytest.mark.slow  # half a minute of waiting; the rule alone: tests/service/engine/test_records.py
def test_a_paused_worker_comes_back_too_late(fleet):
    """T23: stopped for longer than its lease, while its child works on; its result is refused, and
    exactly one is recorded.
    """
    with fleet.client() as client:
        client.put("/v1/datasets/one", content=bundle(1))
        identity = _long(client, dataset="one/test")
        _until_running(client, identity)
        worker = fleet.find("workers", "worker", "inference")
        worker.suspend()
        try:
            lost = ["worker_lost"]
            until(lambda: _outcomes(fleet, identity, "captions") == lost, 20, "the lease's end")
        finally:
            worker.resume()
        assert until_ended(client, identity, 40)["status"] == "succeeded"
        assert _outcomes(fleet, identity, "captions") == ["worker_lost", "done"]


@pytest.mark.slow  # a service of its own; one child alone: tests/workers/test_memory_limit.py
def test_a_task_that_outgrows_its_memory_fails_and_the_next_one_runs(tmp_path):
    """T30: with a limit that torch alone exceeds."""
    with Fleet(tmp_path / "home", PRESCORE_TASK_MEMORY_MB="120") as fleet, fleet.client() as client:
        fleet.add_dataset()
        for _ in range(2):
            ended = until_ended(client, _long(client), 40)
            assert ended["status"] == "failed"
            assert ended["error"]["code"] == "out_of_memory"
            assert "the limit is 120 MB" in ended["error"]["detail"]


def test_ctrl_c_ends_every_process(fleet):
    """What a worker handed back goes on: above; what a dead service had begun: test_storm.py."""
    with fleet.client() as client:
        _until_running(client, _long(client))
    family = fleet.family()
    assert fleet.stop() < 10
    assert all(map(_dead, family))
