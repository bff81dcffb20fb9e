"""The RQ worker: from which queue it takes the next wake-up."""

import pytest
import redis

from helpers.executors import FakeExecutor
from helpers.redis_server import Server
from service.contract.plan.tasks import QUEUES
from workers.runtime.worker import QueueWorker

pytestmark = pytest.mark.processes


@pytest.fixture
def connection(tmp_path):
    server = Server(tmp_path)
    server.start()
    with redis.Redis(unix_socket_path=str(server.socket)) as found:
        yield found
    server.kill()


def test_the_first_queue_comes_first_and_the_others_take_turns(connection):
    """Else tasks of one of them, one after the other, would let the next one wait for ever."""
    runner = FakeExecutor(lambda *_: None)
    runner.name = "inference@test"
    worker = QueueWorker(runner, None, "inference", connection, None)
    first, second, third = QUEUES["inference"]
    for queue, count in ((third, 2), (second, 4), (first, 1)):
        for at in range(count):
            connection.rpush(f"rq:queue:{queue}", f"{queue} {at}")
    found = [worker._next()[1] for _ in range(3)]
    connection.rpush(f"rq:queue:{first}", "late")
    found += [worker._next()[1] for _ in range(5)]
    assert found == [first, second, third, first, second, third, second, second]
