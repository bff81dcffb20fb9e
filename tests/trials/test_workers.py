"""Trials of queue and workers (T17, T21-T32, T47): real processes are killed, stopped, starved."""

import itertools
import os
import signal
import time

import psutil
import pytest
import redis
import sqlalchemy as sa
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from fleet import Fleet, bundle, checkpoint, until, upload
from service.contract.tables import attempts, evaluation_works, work_rows

SEEDS = itertools.count(500)
LONG = {"beam": 60, "min_words": 900, "max_words": 1000}  # some ten seconds for 40 images


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A service of this module's own: it does not stay as it was."""
    fleet = Fleet(tmp_path_factory.mktemp("workers")).start()
    with fleet.client() as client:
        assert client.put("/v1/datasets/tiny", content=bundle(40)).status_code == 201
    yield fleet
    fleet.stop()


def _post(client, **more):
    identity = upload(client, checkpoint(seed=next(SEEDS)))
    request = {"checkpoint": identity, "dataset": "tiny/test", "postgen": [], **more}
    return client.post("/v1/evaluations", json=request).json()["id"]


def _long(client, **more):
    """Captions that take a while: only the decoding, no pre-gen scores."""
    return _post(client, pregen=[], postgen=["rouge_l"], decoding=LONG, **more)


def _get(client, identity):
    return client.get(f"/v1/evaluations/{identity}").json()


def _work(client, identity, name):
    return next(work for work in _get(client, identity)["works"] if work["name"] == name)


def _until_running(client, identity, name="captions"):
    until(lambda: _work(client, identity, name)["status"] == "running", 20, f"{name} is running")


def _until_ended(client, identity, seconds=40):
    return until(
        lambda: (
            found
            if (found := _get(client, identity))["status"] in ("succeeded", "failed", "canceled")
            else None
        ),
        seconds,
        "the evaluation's end",
    )


def _outcomes(fleet, identity, name):
    with fleet.records.reading() as connection:
        return (
            connection.execute(
                sa.select(attempts.c.outcome)
                .join(evaluation_works, evaluation_works.c.work_key == attempts.c.work_key)
                .where(
                    evaluation_works.c.evaluation_id == identity, evaluation_works.c.name == name
                )
                .order_by(attempts.c.attempt)
            )
            .scalars()
            .all()
        )


def _cancel(client, identity):
    assert client.post(f"/v1/evaluations/{identity}/cancel").status_code == 202


def test_a_child_that_is_killed_is_replaced_and_its_work_done_again(fleet):
    """T21."""
    with fleet.client() as client:
        identity = _long(client)
        _until_running(client, identity)
        fleet.find("workers.child", "inference").kill()
        began = time.monotonic()
        until(lambda: _work(client, identity, "captions")["attempts"] == 2, 20, "a second attempt")
        assert time.monotonic() - began < 20
        assert _outcomes(fleet, identity, "captions")[0] == "worker_lost"
        _cancel(client, identity)
        assert _until_ended(client, identity)["status"] == "canceled"


def test_a_work_that_kills_two_children_is_quarantined(fleet):
    """T28: somebody kills its child every time; others wait no longer for it."""
    with fleet.client() as client:
        identity = _long(client)
        for attempt in (1, 2):
            until(
                lambda attempt=attempt: _work(client, identity, "captions")["attempts"] == attempt,
                20,
                "another attempt",
            )
            _until_running(client, identity)
            fleet.find("workers.child", "inference").kill()
        ended = _until_ended(client, identity)
        assert ended["status"] == "failed"
        assert ended["error"]["code"] == "worker_lost"
        assert _outcomes(fleet, identity, "captions") == ["worker_lost", "worker_lost"]
        assert _until_ended(client, _post(client))["status"] == "succeeded"


def test_a_redis_that_does_not_answer_keeps_nobody_waiting(fleet):
    """T26, smaller: what is accepted meanwhile is done afterwards."""
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
            assert client.get("/readyz").status_code == 503
            assert time.monotonic() - began < 2
        finally:
            server.resume()
        assert _until_ended(client, answer.json()["id"])["status"] == "succeeded"


def test_a_worker_that_is_killed_takes_its_child_along_and_its_work_goes_on(fleet):
    """T22: the child is dead within a second, the work runs again within 20."""
    with fleet.client() as client:
        identity = _long(client)
        _until_running(client, identity)
        child = fleet.find("workers.child", "inference")
        fleet.find("workers", "worker", "inference").kill()
        began = time.monotonic()
        until(lambda: _dead(child), 1, "the child's death")
        until(lambda: _work(client, identity, "captions")["attempts"] == 2, 20, "a second attempt")
        assert time.monotonic() - began < 20
        _cancel(client, identity)


def test_a_work_past_its_deadline_is_ended_with_timeout(fleet):
    """T29."""
    with fleet.client() as client:
        identity = _long(client, deadline=3)
        ended = _until_ended(client, identity, seconds=3 + 10)
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
    try:
        return fleet.find("workers.child", "inference").cpu_percent(0.2) < 50
    except (AssertionError, psutil.Error):
        return True


def test_canceling_ends_a_running_work_soon_and_for_good(fleet):
    """T31."""
    with fleet.client() as client:
        identity = _long(client)
        _until_running(client, identity)
        began = time.monotonic()
        _cancel(client, identity)
        assert _until_ended(client, identity, 5)["status"] == "canceled"
        assert time.monotonic() - began < 5
        until(lambda: _idle(fleet), 5, "an idle inference child")
        _cancel(client, identity)
        assert _get(client, identity)["status"] == "canceled"


def test_prefix_scores_overtake_long_decodes(fleet):
    """T32, smaller: behind queued decodes, once the running one ends or is canceled."""
    with fleet.client() as client:
        decodes = [_long(client) for _ in range(3)]
        _until_running(client, decodes[0])
        quick = _post(client)
        _cancel(client, decodes[0])
        until(lambda: _work(client, quick, "prefix")["status"] == "done", 10, "prefix scores")
        assert _work(client, decodes[2], "captions")["status"] == "ready"
        for identity in decodes[1:]:
            _cancel(client, identity)


def test_damaged_columns_are_computed_again(fleet):
    """T17: a byte flipped in a stored blob; another evaluation still gets the right scores."""
    with fleet.client() as client:
        identity = _post(client)
        before = _until_ended(client, identity)
        with fleet.records.transaction() as connection:
            keys = dict(
                connection.execute(
                    sa.select(evaluation_works.c.name, evaluation_works.c.work_key).where(
                        evaluation_works.c.evaluation_id == identity
                    )
                ).all()
            )
            result = connection.execute(
                sa.select(work_rows.c.result).where(work_rows.c.key == keys["columns"])
            ).scalar_one()
            connection.execute(  # as a newer code version of `pregen` would have it
                work_rows.update().where(work_rows.c.key == keys["pregen"]).values(status="failed")
            )
        name = result.removeprefix("sha256:")
        blob = fleet.home / "blobs" / "objects" / name[:2] / name[2:]
        data = bytearray(blob.read_bytes())
        data[-1] ^= 1
        blob.write_bytes(data)
        request = {"checkpoint": before["checkpoint"], "dataset": "tiny/test", "postgen": []}
        again = client.post("/v1/evaluations", json=request).json()["id"]
        after = _until_ended(client, again)
        assert after["status"] == "succeeded"
        assert after["scores"] == before["scores"]
        assert _outcomes(fleet, again, "columns") == ["done", "done"]


def test_what_others_put_into_our_queues_is_not_executed(fleet, tmp_path):
    """T47."""
    canary = tmp_path / "canary"
    connection = redis.Redis(unix_socket_path=str(fleet.home / "redis" / "socket"))
    queue = Queue("inference-now", connection=connection, serializer=JSONSerializer)
    queue.enqueue("os.system", f"touch {canary}")
    queue.enqueue("os.system", f"touch {canary}", job_id="0" * 64)
    pickled = Queue("inference-now", connection=connection)
    pickled.enqueue("os.system", f"touch {canary}")
    connection.rpush("rq:queue:inference-now", "not even a job")
    Job.create("os.system", args=[str(canary)], connection=connection, id="x").save()
    with fleet.client() as client:
        assert _until_ended(client, _post(client))["status"] == "succeeded"
    assert not canary.exists()
    until(lambda: connection.llen("rq:queue:inference-now") == 0, 5, "an empty queue")


def test_redis_may_forget_everything(fleet):
    """T25: FLUSHALL while works wait; they are rung for again."""
    connection = redis.Redis(unix_socket_path=str(fleet.home / "redis" / "socket"))
    with fleet.client() as client:
        running = _long(client)
        _until_running(client, running)
        waiting = [_post(client) for _ in range(3)]
        connection.flushall()
        _cancel(client, running)
        for identity in waiting:
            assert _until_ended(client, identity, 30)["status"] == "succeeded"
            assert set(_outcomes(fleet, identity, "columns")) == {"done"}


def test_a_stopped_worker_hands_its_work_back(fleet):
    """T24: one SIGTERM; nothing is left running, and the next worker goes on."""
    with fleet.client() as client:
        identity = _long(client)
        _until_running(client, identity)
        worker = fleet.find("workers", "worker", "inference")
        worker.terminate()
        until(lambda: _dead(worker), 10, "its end")
        assert "handed back" in _outcomes(fleet, identity, "captions")
        until(lambda: _work(client, identity, "captions")["attempts"] == 2, 20, "a second attempt")
        _cancel(client, identity)


def test_a_paused_worker_comes_back_too_late(fleet):
    """T23, smaller: stopped for longer than its lease; exactly one result is recorded."""
    with fleet.client() as client:
        identity = _long(client)
        _until_running(client, identity)
        worker = fleet.find("workers", "worker", "inference")
        os.kill(worker.pid, signal.SIGSTOP)
        try:
            until(
                lambda: _work(client, identity, "captions")["status"] != "running",
                20,
                "the lease's end",
            )
        finally:
            os.kill(worker.pid, signal.SIGCONT)
        until(lambda: _work(client, identity, "captions")["attempts"] == 2, 20, "a second attempt")
        _cancel(client, identity)
        assert _outcomes(fleet, identity, "captions")[0] == "worker_lost"


def test_a_work_that_outgrows_its_memory_fails_and_the_next_one_runs(tmp_path):
    """T30: with a limit that torch alone exceeds."""
    fleet = Fleet(tmp_path / "home", PRESCORE_WORK_MEMORY_MB="120").start()
    try:
        with fleet.client() as client:
            client.put("/v1/datasets/tiny", content=bundle(40))
            for _ in range(2):
                ended = _until_ended(client, _long(client))
                assert ended["status"] == "failed"
                assert ended["error"]["code"] == "out_of_memory"
                assert "the limit is 120 MB" in ended["error"]["detail"]
    finally:
        fleet.stop()


def test_ctrl_c_ends_every_process_and_a_new_start_goes_on(tmp_path):
    fleet = Fleet(tmp_path / "home").start()
    with fleet.client() as client:
        client.put("/v1/datasets/tiny", content=bundle(40))
        identity = _long(client)
        _until_running(client, identity)
        quick = _post(client)
    family = fleet.family()
    assert fleet.stop() < 10
    assert all(map(_dead, family))
    fleet.start()
    try:
        with fleet.client() as client:
            until(lambda: _work(client, identity, "captions")["attempts"] == 2, 20, "it goes on")
            _cancel(client, identity)
            assert _until_ended(client, quick)["status"] == "succeeded"
    finally:
        fleet.stop()
