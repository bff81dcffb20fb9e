"""Asking a service again and again while something else happens to it."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from helpers.fleet import Fleet

PEAK = 1_000_000_000  # bytes
LATE = 0.5  # seconds


@contextmanager
def asked(
    url: str,
    pause: float,
    each: Callable[[], object] = lambda: None,
    headers: Mapping[str, str] | None = None,
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

    with httpx.Client(timeout=60, headers=headers) as client, ThreadPoolExecutor(1) as pool:
        assert client.get(url).status_code == 200
        asking = pool.submit(ask, client)
        try:
            yield seconds
        finally:
            over.set()
        asking.result()


def p99(seconds: list[float]) -> float:
    return sorted(seconds)[int(0.99 * len(seconds))]


def forget_peak(process: psutil.Process) -> None:
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def peak(process: psutil.Process) -> int:
    """The most memory that a process has had since `forget_peak`, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


@contextmanager
def served(fleet: Fleet, what: str, pause: float = 0.1) -> Iterator[list[float]]:
    """Get a list after each `pause`: 99 % of its answers have to come within `LATE`, and the API's
    memory has to stay below `PEAK`. Gives the seconds of the answers; `what` happens meanwhile.
    """
    api = fleet.find("api")
    forget_peak(api)
    with asked(f"{fleet.url}/v1/evaluations?limit=1", pause) as seconds:
        yield seconds
    most, late = peak(api), p99(seconds)
    longest = f"p99 {late:.3f} s, at most {max(seconds):.3f} s"
    print(f"beside {what}: API {most >> 20} MB, {len(seconds)} others {longest}")
    assert most < PEAK
    assert late < LATE
