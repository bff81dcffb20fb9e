"""Presence of workers on this machine: each keeps a file of the home folder locked.

The kernel lifts the lock at the process's end, however it ends, so others see a death at once and
need not wait for leases. Files of other machines are left alone: not every shared file system tells
locks from one machine to another.
"""

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def stay_present(home: Path, worker: str) -> Iterator[None]:
    """Live as this worker, whose name no other worker ever has."""
    path = _folder(home) / worker
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{worker}")  # locked before others look at it
    with made.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # a file system without locks: then leases tell
            made.unlink()
            yield
            return
        made.rename(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def find_dead_workers(home: Path) -> Iterator[str]:
    """Dead workers of this machine; each is forgotten after the next one is asked for."""
    for path in sorted(_folder(home).glob(f"[!.]*@{socket.gethostname()}:*")):
        with contextlib.suppress(OSError), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            yield path.name
            path.unlink(missing_ok=True)


def name_worker(role: str) -> str:
    """A name for a worker of this process, which begins with its role and machine."""
    return f"{role}@{socket.gethostname()}:{os.getpid()}-{os.urandom(4).hex()}"


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when the thread that started it ends. A busy
    process would notice the end of a pipe too late.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _folder(home: Path) -> Path:
    return home / "workers"
