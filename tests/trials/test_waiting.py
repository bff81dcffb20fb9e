"""A trial of waiting (T05): many who wait at once."""

import itertools
import json
import selectors
import socket
import time
from contextlib import ExitStack

import pytest

from helpers.fleet import until
from service.engine.tables import runs

SEEDS = itertools.count(3000)
WAITERS = 300


@pytest.fixture
def still(fleet):
    """An evaluation of no tasks: it changes when the test says so."""
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


def test_three_hundred_waiters_cost_little_and_are_told_within_half_a_second(fleet, client, still):
    """T05: less than 60 MB for all of them."""
    api = fleet.find("api")
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
