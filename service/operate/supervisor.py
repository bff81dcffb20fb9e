"""Supervisor of the service's processes on one machine: `prescore serve`.

One supervisor and its children: Redis, the API, an inference worker, a metrics worker, the janitor.
A child that ends is started again; when the supervisor ends, all its children end, even if it is
killed.
"""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FrameType

import structlog

from service.contract import settings
from service.contract.settings import Settings
from service.engine import database, presence
from service.operate import home
from service.operate.own_redis import OwnRedis

log = structlog.get_logger()

_STOP_SECONDS = 7.0
_REDIS_STOP_SECONDS = 2.0
_RESTART_SECONDS = 1.0


@dataclass
class _ServiceProcess:
    name: str
    command: list[str]
    handed: tuple[Mapping[str, str], bytes]  # its environment and its standard input
    process: "subprocess.Popen[bytes] | None" = None
    restart_at: float = 0.0


class Supervisor:
    """Starts, watches and ends the service's processes."""

    def __init__(self, chosen: Settings, host: str, port: int) -> None:
        self._home = chosen.home
        self._redis = OwnRedis(chosen.home) if chosen.redis_url is None else None
        url = chosen.redis_url if self._redis is None else self._redis.url
        self._settings = chosen.model_copy(update={"redis_url": url})
        self._stopping = False
        handed = settings.export_settings(self._settings)
        self._members = [
            _ServiceProcess(name, [sys.executable, "-m", *words], handed)
            for name, words in _commands(host, port).items()
        ]

    def run(self, on_ready: Callable[[], None], is_ready: Callable[[], bool]) -> None:
        """Run until SIGINT or SIGTERM; calls `on_ready` once, when `is_ready()` is true."""
        signal.signal(signal.SIGINT, self._ask_to_stop)
        signal.signal(signal.SIGTERM, self._ask_to_stop)
        with home.hold_home(self._home):
            try:
                self._prepare()
                announced = False
                while not self._stopping:
                    self._keep_alive()
                    if not announced and is_ready():
                        announced = True
                        on_ready()
                    time.sleep(0.1)
            finally:
                self._end_all()

    def _prepare(self) -> None:
        """Start Redis, and bring the record to this version: all others need them."""
        database.migrate_database(database.open_database(self._settings.database))
        if self._redis is not None:
            member = _ServiceProcess("redis", self._redis.command(), ({}, b""))
            self._members.insert(0, member)
            member.process = _start(member)
            self._redis.wait(member.process)

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._stopping = True

    def _keep_alive(self) -> None:
        for member in self._members:
            if member.process is not None and member.process.poll() is not None:
                log.error("ended", name=member.name, code=member.process.returncode)
                member.process = None
                member.restart_at = time.monotonic() + _RESTART_SECONDS
            if member.process is None and time.monotonic() >= member.restart_at:
                member.process = _start(member)

    def _end_all(self) -> None:
        """Redis last: the others hand back what they have."""
        running = {each.name: each.process for each in self._members if each.process is not None}
        server = running.pop("redis", None)
        _end(running.values(), _STOP_SECONDS)
        _end(filter(None, [server]), _REDIS_STOP_SECONDS)


def _commands(host: str, port: int) -> dict[str, list[str]]:
    return {
        "api": ["service", "api", "--host", host, "--port", str(port)],
        "inference": ["workers", "worker", "inference"],
        "metrics": ["workers", "worker", "metrics"],
        "janitor": ["service", "janitor"],
    }


def _start(member: _ServiceProcess) -> "subprocess.Popen[bytes]":
    """Start a process in its own session, so that the terminal's Ctrl-C does not reach it."""
    environment, handed = member.handed
    process = subprocess.Popen(  # noqa: S603  our own programs
        member.command,
        env=environment,
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
        preexec_fn=lambda: presence.end_with_parent(signal.SIGTERM),  # noqa: PLW1509  one system call, no Python state
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
        stdin.write(handed)
    return process


def _end(processes: Iterable["subprocess.Popen[bytes]"], seconds: float) -> None:
    """Ask all to end, and kill those that have not within these seconds."""
    asked = list(processes)
    for process in asked:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
    until = time.monotonic() + seconds
    for process in asked:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
