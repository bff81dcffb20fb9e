"""Trials of wake-ups in a real Redis (T25, T47): what others put there, and what is lost."""

import os
import signal
import time

import pytest
import sqlalchemy as sa

from service.engine import leases, task_queue
from service.engine.records import Records
from service.engine.tables import task_rows
from service.engine.task_queue import RedisQueue
from workers.runtime.worker import QueueWorker

QUEUE = "rq:queue:metrics"


@pytest.fixture
def connection(server):
    connection = task_queue.connect_redis(server.url)
    connection.flushall()
    return connection


@pytest.fixture
def records(engine):
    return Records(engine)


def _key(number):
    return f"{number:064x}"


class Performing:
    """A runner that counts what it is asked for; at the last one comes the signal that ends its
    worker.
    """

    def __init__(self, last):
        self.name = "metrics@here:1-0"
        self.queues = []
        self.asked = 0
        self._last = last

    def run_first(self, queue):
        self.queues.append(queue)
        if len(self.queues) == self._last:
            os.kill(os.getpid(), signal.SIGTERM)
        if len(self.queues) % 2:
            raise sa.exc.OperationalError("SELECT", {}, Exception("the record was away"))

    def ask_to_stop(self):
        self.asked += 1


@pytest.fixture
def listen(connection, monkeypatch):
    """Let a worker perform so many tasks; returns of which queues they were."""
    monkeypatch.setattr("workers.runtime.worker._PAUSE_SECONDS", 0.01)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def listen(last):
        performing = Performing(last)
        queues = RedisQueue(connection)
        QueueWorker(performing, queues, "metrics", connection, beside=performing).listen()
        assert performing.asked == 2
        return performing.queues

    yield listen
    for number, handler in before.items():
        signal.signal(number, handler)


def test_nothing_that_lies_in_redis_ends_a_worker(connection, listen):
    """T47: keys whose data is gone, of another type or odd; entries that are no text; a record
    that is away for a moment.
    """
    queues = RedisQueue(connection)
    queues.wake_all((_key(number), "metrics") for number in range(6))
    connection.delete(f"rq:job:{_key(0)}")
    connection.hdel(f"rq:job:{_key(1)}", "status")
    connection.hset(f"rq:job:{_key(2)}", mapping={"created_at": "never", "timeout": "long"})
    connection.delete(f"rq:job:{_key(3)}")
    connection.set(f"rq:job:{_key(3)}", "no job")
    connection.rpush(QUEUE, b"\xff\xfe", "x" * 1_000_000, "", "\n::error::")
    connection.set("rq:suspended", 1)
    queues.wake_all([(_key(8), "metrics")])
    assert listen(last=7) == ["metrics"] * 7
    assert queues.foreign() == 4
    connection.set("prescore:foreign", "many")
    assert queues.foreign() == 0
    assert connection.keys("rq:job:*") == []
    assert connection.smembers("rq:workers") == set()


def test_what_lies_in_the_place_of_a_queue_is_dropped(connection, listen):
    """T47."""
    queues = RedisQueue(connection)
    connection.set(QUEUE, "no queue")
    queues.wake_all([(_key(8), "parsing")])
    assert listen(last=1) == ["parsing"]
    assert queues.foreign() == 1


def test_a_worker_is_known_again_to_a_redis_that_has_forgotten_it(connection, listen):
    performing = Performing(None)
    worker = QueueWorker(performing, RedisQueue(connection), "metrics", connection, performing)
    worker.announce()
    connection.flushall()
    connection.sadd("rq:workers:metrics", "rq:worker:gone")
    worker.announce()
    assert connection.smembers("rq:workers:metrics") == {worker.key.encode()}


def _insert(records, count):
    counts = dict.fromkeys(("waiting_for", "attempt", "deaths", "done", "total", "created_at"), 0)
    texts = {"inputs": "{}", "parts": "[]", "parameters": "{}"}
    common = {"kind": "bleu", "queue": "metrics", "status": "ready", "deadline": 1e12, **texts}
    common |= {"rung_at": 0.0, **counts}
    rows = [{"key": _key(number), **common} for number in range(count)]
    with records.transaction() as connection:
        connection.execute(task_rows.insert(), rows)


def _asked(connection):
    """How often Redis was asked each command since the last `CONFIG RESETSTAT`."""
    found = connection.info("commandstats")
    return {name.removeprefix("cmdstat_"): said["calls"] for name, said in found.items()}


def test_lost_wake_ups_are_sent_again_in_few_rounds_however_many_others_wait(connection, records):
    """T25: one of 2,500 in the queue, which is counted and not read; then all of them, once, but
    for what was woken just now.
    """
    _insert(records, 2500)
    queues = RedisQueue(connection)
    queues.wake_all((_key(number), "metrics") for number in range(2499))
    connection.config_resetstat()
    assert [queues.ring_again(records, before=time.time()) for _ in range(3)] == [1, 0, 0]
    assert connection.llen(QUEUE) == 2500
    asked = _asked(connection)
    assert "lpos" not in asked
    assert "lrange" not in asked
    connection.flushall()
    began = time.time()
    rung = [queues.ring_again(records, before=began) for _ in range(3)]
    assert rung == [2000, 500, 0]
    assert len(set(connection.lrange(QUEUE, 0, -1))) == connection.llen(QUEUE) == 2500
    connection.flushall()
    assert queues.ring_again(records, before=began) == 0


def test_tasks_whose_wake_ups_began_others_are_all_begun_and_no_queue_grows(connection, records):
    """T63: wake-ups say that something is ready, not what: one is lost, one began a task that has
    none, some are for nothing.
    """
    _insert(records, 40)
    queues = RedisQueue(connection)
    queues.wake_all((_key(number), "metrics") for number in range(30))
    queues.wake_all((_key(number), "metrics") for number in range(100, 105))
    began = []
    for _ in range(60):
        queues.ring_again(records, before=time.time() + 1)
        assert connection.llen(QUEUE) <= 40
        if connection.lpop(QUEUE) is not None:
            lease = leases.lease_first_task(records, "metrics", "metrics@here:1-0")
            began += [lease.key] if lease else []
    assert sorted(began) == [_key(number) for number in range(40)]
    assert connection.llen(QUEUE) == 0
