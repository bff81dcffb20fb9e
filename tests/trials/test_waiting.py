"""Trials of waiting (T04, T05): `Prefer: wait`, long polls, many at once."""

import itertools
import json
import selectors
import socket
import time
from contextlib import ExitStack

import httpx
import pytest

from fleet import LONG, checkpoint, until, upload
from service.works.tables import runs

SEEDS = itertools.count(3000)
WAITERS = 300


def _request(client, **more):
    identity = upload(client, checkpoint(seed=next(SEEDS)))
    return {"checkpoint": identity, "dataset": "tiny/test", "postgen": [], **more}


def _post(client, request, seconds):
    return client.post("/v1/evaluations", json=request, headers={"Prefer": f"wait={seconds}"})


def _status(client, identity):
    return client.get(f"/v1/evaluations/{identity}").json()["status"]


@pytest.mark.parametrize("seconds", [1, 3])
def test_what_takes_longer_is_answered_when_the_wait_is_over_and_goes_on(client, seconds):
    """T04: 202 at N ± 0.5 s. Captions alone are waited for to the end: these take a minute."""
    request = _request(client, pregen=[], postgen=["rouge_l"], decoding=LONG)
    began = time.monotonic()
    answer = _post(client, request, seconds)
    assert abs(time.monotonic() - began - seconds) < 0.5
    assert answer.status_code == 202
    assert answer.headers["Preference-Applied"] == f"wait={seconds}"
    identity = answer.json()["id"]
    until(lambda: _status(client, identity) == "running", 20, "it goes on")
    client.post(f"/v1/evaluations/{identity}/cancel")


def test_a_client_that_hangs_up_while_it_waits_changes_nothing(fleet, client):
    """T04."""
    request = _request(client, labels={"who": "hung up"})
    with fleet.client() as impatient, pytest.raises(httpx.ReadTimeout):
        impatient.post("/v1/evaluations", json=request, headers={"Prefer": "wait=30"}, timeout=0.2)
    query = {"label.who": "hung up"}

    def ended():
        items = client.get("/v1/evaluations", params=query).json()["items"]
        assert len(items) <= 1
        return items and items[0]["status"] == "succeeded"

    until(ended, 30, "the end of what nobody waits for")


@pytest.fixture
def still(fleet):
    """An evaluation of no works: it changes when the test says so."""
    identity = f"ev_still_{next(SEEDS)}"
    with fleet.records.transaction() as connection:
        connection.execute(
            runs.insert().values(
                id=identity,
                kind="evaluation",
                request=json.dumps({"checkpoint": None, "postgen": []}),
                dataset_name="still",
                dataset_version=1,
                dataset_digest="d",
                split="s",
                status="queued",
                version=1,
                warnings="[]",
                deadline=1e12,
                created_at=0.0,
            )
        )
    yield identity
    with fleet.records.transaction() as connection:
        connection.execute(runs.delete().where(runs.c.id == identity))


def test_a_long_poll_answers_with_the_new_version_though_the_old_one_is_kept(client):
    request = _request(client, pregen=[], postgen=["rouge_l"], decoding=LONG)
    address = _post(client, request, 0).headers["Location"]
    tag = client.get(address).headers["ETag"]
    client.get(address)  # from here on the service keeps these bytes
    client.post(f"{address}/cancel")
    changed = client.get(address, headers={"If-None-Match": tag, "Prefer": "wait=20"})
    assert changed.headers["ETag"] != tag
    assert changed.json()["status"] == "canceled"


def test_three_hundred_waiters_cost_little_and_are_told_within_half_a_second(fleet, client, still):
    """T05: less than 60 MB for all of them."""
    api = fleet.find("uvicorn")
    before = api.memory_info().rss
    request = (
        f"GET /v1/evaluations/{still} HTTP/1.1\r\nHost: prescore\r\n"
        f'If-None-Match: "{still}.1"\r\nPrefer: wait=30\r\nConnection: close\r\n\r\n'
    ).encode()
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(WAITERS):
            waiter = stack.enter_context(socket.create_connection(("127.0.0.1", fleet.port)))
            waiter.sendall(request)
            selector.register(waiter, selectors.EVENT_READ)
        until(lambda: _is_idle(client), 20, "a service that has read all requests")
        during = api.memory_info().rss
        assert not selector.select(0)
        with fleet.records.transaction() as connection:
            connection.execute(runs.update().where(runs.c.id == still).values(version=2))
        changed = time.monotonic()
        late = []
        while len(late) < WAITERS:
            for key, _ in selector.select(20):
                late.append(time.monotonic() - changed)
                assert key.fileobj.recv(15) == b"HTTP/1.1 200 OK"
                selector.unregister(key.fileobj)
    assert during - before < 60_000_000
    assert late[WAITERS // 2] < 0.5, late


def _is_idle(client):
    began = time.monotonic()
    for _ in range(5):
        client.get("/livez")
    return time.monotonic() - began < 0.05
