"""The folder of all data of `prescore serve`: for its user alone, and for one service at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.contract.errors import InvalidSetting

_LOCK = "lock"
_RESTORING = "restoring"  # is there while a backup is restored
_NOT_RESTORED = {_LOCK, "assets"}  # what may be there before: assets are in no backup


@contextmanager
def hold_home(home: Path) -> Iterator[None]:
    """Take the folder until the end; InvalidSetting where another service has it, or where a backup
    is half restored.

    The system releases it when this process ends, however it ends.
    """
    with _locked(home):
        if (home / _RESTORING).exists():
            raise InvalidSetting(
                f"--home {home}: a restoration was ended here before it was whole: run `prescore "
                "restore` again, or choose another folder"
            )
        yield


@contextmanager
def hold_empty_home(home: Path) -> Iterator[bool]:
    """Take an empty folder for a backup; gives whether this goes on where a restoration was ended.

    InvalidSetting where there is anything else. If the block fails, nothing can start there but
    another restoration.
    """
    with _locked(home):
        marker = home / _RESTORING
        again = marker.exists()
        others = sorted(path.name for path in home.iterdir() if path.name not in _NOT_RESTORED)
        if others and not again:
            raise InvalidSetting(
                f"--home {home}: expected an empty folder, found {others[0]!r:.100} there: a "
                "backup is restored into a new one"
            )
        marker.touch()
        yield again
        marker.unlink()


@contextmanager
def _locked(home: Path) -> Iterator[None]:
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
