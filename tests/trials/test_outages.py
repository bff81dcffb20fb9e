"""Trials of a Redis that goes away (T25, T26): what was accepted is done, nothing twice."""

import itertools
import time

import pytest
import sqlalchemy as sa

from helpers.fleet import LONG, Fleet, checkpoint, until, upload
from service.engine.tables import attempts

SEEDS = itertools.count(6000)
GONE = 30  # seconds: longer than a lease


@pytest.fixture(scope="module")
def outaged(tmp_path_factory, server):
    """A service that stands on that Redis, which is there again when a trial is over."""
    with Fleet(tmp_path_factory.mktemp("outaged"), PRESCORE_REDIS_URL=server.url) as fleet:
        fleet.add_dataset()
        yield fleet


def _request(client, **more):
    identity = upload(client, checkpoint(seed=next(SEEDS)))
    return {"checkpoint": identity, "dataset": "tiny/test", "postgen": [], **more}


def _status(client, identity):
    return client.get(f"/v1/evaluations/{identity}").json()["status"]


def _quick(call):
    """Its answer, which came within two seconds."""
    began = time.monotonic()
    answer = call()
    assert time.monotonic() - began < 2
    return answer


@pytest.mark.slow  # a fleet and a Redis of its own; with silent links: test_cut_off.py
def test_while_redis_is_gone_the_api_answers_and_nothing_accepted_is_lost(server, outaged):
    """T26: also what was in the queue of a Redis that keeps nothing; cancel goes on working."""
    with outaged.client() as client:
        before = [client.post("/v1/evaluations", json=_request(client)).json()["id"]]
        decode = _request(client, pregen=[], postgen=["rouge_l"], decoding=LONG)
        doomed = client.post("/v1/evaluations", json=decode).json()["id"]
        ends = time.monotonic() + GONE
        server.kill()
        during = []
        while time.monotonic() < ends:
            request = _request(client)
            answer = _quick(lambda request=request: client.post("/v1/evaluations", json=request))
            assert answer.status_code in (202, 503)
            if answer.status_code == 202:
                during.append(answer.json()["id"])
            assert _quick(lambda: client.get("/readyz")).json()["findings"]
            assert _quick(lambda: client.get("/livez")).status_code == 200
            assert _quick(lambda: _status(client, before[0]))
            time.sleep(0.5)
        _quick(lambda: client.post(f"/v1/evaluations/{doomed}/cancel"))
        assert _status(client, doomed) == "canceled"
        server.start()
        # Workers are seen again when they have connected.
        until(lambda: client.get("/readyz").json().get("findings") == [], 10, "Redis and workers")
        back = time.monotonic()
        for identity in before + during:
            until(lambda identity=identity: _status(client, identity) == "succeeded", 60, "its end")
        assert during
        _nothing_twice(outaged)
        print(f"all done {time.monotonic() - back:.1f} s after Redis came back")


@pytest.mark.slow
def test_a_redis_that_is_restarted_mid_run_loses_no_task(outaged, server):
    """T25: it forgets its queues; the record does not."""
    with outaged.client() as client:
        decode = _request(client, pregen=[], postgen=["rouge_l"], decoding=LONG)
        running = client.post("/v1/evaluations", json=decode).json()["id"]
        until(lambda: _status(client, running) == "running", 20, "a running decode")
        waiting = [
            client.post("/v1/evaluations", json=_request(client)).json()["id"] for _ in range(3)
        ]
        server.kill()
        server.start()
        for identity in waiting:
            until(lambda identity=identity: _status(client, identity) == "succeeded", 40, "its end")
        client.post(f"/v1/evaluations/{running}/cancel")
        assert _status(client, running) == "canceled"
        _nothing_twice(outaged)


def _nothing_twice(fleet):
    with fleet.records.reading() as connection:
        counts = connection.execute(
            sa.select(sa.func.count())
            .where(attempts.c.outcome == "done")
            .group_by(attempts.c.task_key)
        ).scalars()
        assert set(counts) == {1}
