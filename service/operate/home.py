"""The folder of all data of `prescore serve`: for its user alone, and for one service at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.contract.errors import InvalidSetting

_LOCK = "lock"


@contextmanager
def taken(home: Path) -> Iterator[None]:
    """Take the folder until the end; InvalidSetting where another service has it.

    The system releases it when this process ends, however it ends.
    """
    _make(home)
    with (home / _LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise InvalidSetting(
                f"--home {home}: another `prescore serve` works there (process {lock.read(20)!r}): "
                "stop it first, or choose another folder"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _make(home: Path) -> None:
    """A new folder, or one that is ours already, is for its user alone."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not any(home.iterdir()) or (home / _LOCK).exists() or (home / "redis").exists():
            home.chmod(0o700)
    except OSError as error:
        raise InvalidSetting(
            f"--home {home}: expected a folder that this user may write ({error.strerror})"
        ) from None
