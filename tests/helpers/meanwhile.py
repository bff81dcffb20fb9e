"""Asking a service again and again while something else happens to it."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx


@contextmanager
def asked(
    url: str, pause: float, each: Callable[[], object] = lambda: None
) -> Iterator[list[float]]:
    """Get `url` all the time; gives the list of how many seconds each answer took. `each` is called
    after every answer.

    Who asks has asked before, and checks nothing: a first answer takes its client longer than that.
    """
    over = threading.Event()
    seconds: list[float] = []

    def ask(client: httpx.Client) -> None:
        while not over.is_set():
            began = time.monotonic()
            assert client.get(url).status_code == 200
            seconds.append(time.monotonic() - began)
            each()
            over.wait(pause)

    with httpx.Client(timeout=60) as client, ThreadPoolExecutor(1) as pool:
        assert client.get(url).status_code == 200
        asking = pool.submit(ask, client)
        try:
            yield seconds
        finally:
            over.set()
        asking.result()


def p99(seconds: list[float]) -> float:
    return sorted(seconds)[int(0.99 * len(seconds))]
