"""Which workers Redis knows: those whose connection is there, as they have named it."""

import time

import pytest

from helpers import outside
from helpers.waits import until
from service.engine import task_queue
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
