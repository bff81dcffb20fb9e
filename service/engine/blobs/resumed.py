"""Objects that arrive in several requests: files that stay between them.

One process at a time has such a file: it is locked as long as it is open, and the kernel lifts the
lock of a process that dies.
"""

import fcntl
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

_CHUNK = 1 << 20


class Held(Exception):
    """Another process, or another request, has the file."""


class BytesLost(Exception):
    """The file has fewer bytes than were told to be there."""


@dataclass
class Hashed:
    """The SHA-256 of a file's first `size` bytes."""

    sha: Any = field(default_factory=hashlib.sha256)
    size: int = 0

    def add(self, data: bytes | memoryview) -> None:
        self.sha.update(data)
        self.size += len(data)


class Resumed:
    """An object of which more may be written; it becomes visible with `commit`.

    Bytes are hashed as they come where all before them were. Where they were not, as after a
    restart, `hash` reads them again: a gigabyte takes 0.6 to 1.5 s.
    """

    def __init__(
        self, path: Path, publish: Callable[[Path, str], None], hashed: Hashed | None = None
    ) -> None:
        self.path = path
        self.size = 0
        self._publish = publish
        self._hashed = hashed or Hashed()
        self._lock = RLock()  # who closes waits for a thread that writes
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise Held from None
        except OSError:  # a file system without locks
            pass

    def begin(self, size: int) -> None:
        """Go on after so many bytes; what stands behind them was not promised to be kept."""
        if os.fstat(self._file).st_size < size:
            raise BytesLost
        os.ftruncate(self._file, size)
        self.size = size
        if self._hashed.size > size:
            self._hashed = Hashed()

    def beginning(self, count: int) -> bytes:
        return os.pread(self._file, min(count, self.size), 0)

    def write(self, data: bytes) -> None:
        """What was written before an error counts."""
        left = memoryview(data)
        with self._lock:
            while left:
                count = os.pwrite(self._file, left, self.size)
                if self._hashed.size == self.size:
                    self._hashed.add(left[:count])
                self.size += count
                left = left[count:]

    def sync(self) -> int:
        """How many bytes are durable now."""
        with self._lock:
            size = self.size
            os.fsync(self._file)
        return size

    def hash(self) -> Hashed:
        """Afterwards `digest` knows all bytes."""
        with self._lock:
            while self._hashed.size < self.size:
                data = os.pread(
                    self._file, min(_CHUNK, self.size - self._hashed.size), self._hashed.size
                )
                if not data:
                    raise BytesLost
                self._hashed.add(data)
        return self._hashed

    @property
    def hashed(self) -> Hashed:
        return self._hashed

    @property
    def digest(self) -> str:
        return f"sha256:{self.hash().sha.hexdigest()}"

    def commit(self) -> str:
        """Publishes the object under its digest, durably; returns the digest."""
        digest = self.digest
        self.sync()
        self._publish(self.path, digest)
        return digest

    def close(self) -> None:
        """Let others have the file."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def delete(self) -> None:
        with suppress(FileNotFoundError):
            self.path.unlink()
        self.close()
