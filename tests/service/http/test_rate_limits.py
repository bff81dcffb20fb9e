"""Requests a minute: counted here at once, and with other processes each second."""

import asyncio
from collections import Counter

import pytest

from helpers import redis_server
from service.engine import task_queue
from service.engine.task_queue import RedisQueue
from service.http.middleware.rate_limits import RateLimiter

NOON = 1_764_072_000.0  # a minute begins


class SumsInMemory:
    """What several processes add up, as Redis would."""

    def __init__(self):
        self.sums = Counter()

    def add_up(self, more, seconds):
        assert seconds >= 60
        self.sums.update(more)
        return {name: self.sums[name] for name in more}


def test_a_minute_has_so_many_and_the_next_one_begins_anew():
    rates = RateLimiter(SumsInMemory())
    left = [rates.count("a", 3, NOON + second).left for second in (0, 1, 2, 59)]
    assert left == [2, 1, 0, -1]
    assert rates.count("a", 3, NOON + 2).is_over
    assert not rates.count("b", 3, NOON + 2).is_over
    assert rates.count("a", 3, NOON + 60).left == 2


def test_the_headers_are_those_of_the_draft():
    rate = RateLimiter(SumsInMemory()).count("a", 60, NOON + 18)
    assert dict(rate.headers) == {
        b"ratelimit-policy": b'"requests";q=60;w=60',
        b"ratelimit": b'"requests";r=59;t=42',
    }


def _exchanged(*rates):
    for one in rates:
        asyncio.run(one.exchange())


def test_what_other_processes_have_counted_counts_after_an_exchange():
    together = SumsInMemory()
    one, two = RateLimiter(together), RateLimiter(together)
    for _ in range(4):
        one.count("a", 10, NOON)
    two.count("a", 10, NOON)
    _exchanged(one, two)
    assert two.count("a", 10, NOON).left == 10 - 4 - 2
    _exchanged(two)
    assert one.count("a", 10, NOON).left == 10 - 5  # what two has counted, it learns when it tells
    _exchanged(one, two)
    assert one.count("a", 10, NOON).left == 10 - 6 - 2


def test_nothing_is_told_twice_nor_of_another_minute():
    together = SumsInMemory()
    rates = RateLimiter(together)
    rates.count("a", 10, NOON)
    _exchanged(rates, rates)
    rates.count("a", 10, NOON + 60)
    _exchanged(rates)
    assert sorted(together.sums.values()) == [1, 1]


@pytest.mark.processes
def test_redis_adds_up_and_forgets(tmp_path):
    server = redis_server.Server(tmp_path)
    server.start()
    try:
        queue = RedisQueue(task_queue.connect_redis(server.url))
        assert queue.add_up({"prescore:requests:1:a": 2}, 120) == {"prescore:requests:1:a": 2}
        both = {"prescore:requests:1:a": 3, "prescore:requests:1:b": 1}
        assert queue.add_up(both, 120) == {"prescore:requests:1:a": 5, "prescore:requests:1:b": 1}
        assert 100 < queue.connection.ttl("prescore:requests:1:a") <= 120
        queue.connection.close()
    finally:
        server.kill()
