"""Which workers Redis knows: those whose connection is there, as they have named it; and their
states.
"""

import time

import pytest

from helpers import outside
from helpers.stored_records import open_empty_record
from helpers.waits import until
from service.engine import fleet_status, task_queue
from service.engine.records import Records
from service.engine.tables import task_rows
from service.engine.task_queue import RedisQueue


@pytest.mark.processes
def test_redis_knows_the_workers_that_are_connected_and_since_when():
    with outside.or_skip(outside.redis_database()) as url:
        queue = RedisQueue(task_queue.connect_redis(url))
        # Others of this server's clients may be workers of other tests.
        mine = {f"inference@here:{time.time_ns()}-00000000", f"metrics@here:{time.time_ns()}-0"}
        others = {"api@here", "inference", "xmetrics@here:1-0"}
        before = time.time()
        clients = [task_queue.connect_redis(url, name=name) for name in mine | others]
        for client in clients:
            client.ping()
        found = queue.connected()
        assert mine <= found.keys()
        assert not others & found.keys()
        for name in mine:
            assert before - 1.5 <= found[name] <= time.time()  # ages are whole seconds
        counts = queue.workers()
        assert min(counts["inference"], counts["metrics"]) >= 1
        for client in clients:
            client.close()
        until(lambda: not mine & queue.connected().keys(), 5, "that they are gone")
        queue.connection.close()


NOW = 10_000.0
PLAIN = {
    **dict.fromkeys(("inputs", "parameters"), "{}"),
    **dict.fromkeys(("waiting_for", "attempt", "deaths", "done", "total"), 0),
    "parts": "[]",
    "created_at": 1.0,
    "deadline": 1e12,
    "kind": "columns",
}


@pytest.fixture
def records(tmp_path):
    engine = open_empty_record(tmp_path)
    yield Records(engine)
    engine.dispose()


def _enter(records, key, **row):
    with records.transaction() as connection:
        connection.execute(task_rows.insert().values(**PLAIN, key=key, **row))


def _states(records, **since):
    connected = {f"{name}@here:1": NOW - seconds for name, seconds in since.items()}
    found = fleet_status.list_workers(records, connected, NOW)
    return {worker.name.split("@")[0]: (worker.state, worker.since) for worker in found}


@pytest.mark.parametrize(
    ("queue", "ready", "states"),
    [
        ("inference", 61.0, ("not_answering", "idle")),
        ("inference-now", 61.0, ("not_answering", "idle")),
        ("parsing", 61.0, ("idle", "not_answering")),
        ("inference", 59.0, ("idle", "idle")),
    ],
)
def test_an_idle_worker_whose_tasks_wait_for_long_does_not_answer(records, queue, ready, states):
    _enter(records, "a", queue=queue, status="ready", ready_at=NOW - ready)
    found = _states(records, inference=500, metrics=500)
    assert found["inference"] == (states[0], NOW - 500)
    assert found["metrics"] == (states[1], NOW - 500)


def test_a_worker_that_has_just_come_is_idle(records):
    _enter(records, "a", queue="inference", status="ready", ready_at=NOW - 600)
    assert _states(records, inference=59)["inference"] == ("idle", NOW - 59)


def test_a_task_that_waits_for_others_keeps_nobody_waiting(records):
    _enter(records, "a", queue="inference", status="waiting", ready_at=NOW - 600)
    assert _states(records, inference=500)["inference"][0] == "idle"


@pytest.mark.parametrize(("until", "state"), [(NOW + 3, "busy"), (NOW - 1, "not_answering")])
def test_a_worker_with_a_task_is_busy_while_its_lease_lasts(records, until, state):
    running = {"queue": "inference", "status": "running", "worker": "inference@here:1"}
    _enter(records, "a", **running, started_at=NOW - 40, lease_until=until)
    _enter(records, "b", queue="inference", status="ready", ready_at=NOW - 600)
    assert _states(records, inference=500) == {"inference": (state, NOW - 40)}
    assert _states(records) == {"inference": (state, NOW - 40)}  # Redis has lost it
