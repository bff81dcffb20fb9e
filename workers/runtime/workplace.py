"""Where attempts have their files: inputs are brought here, results taken from here.

What an attempt wrote goes with it, however it ended; what a killed worker left behind, the next
one sweeps.
"""

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TypeVar

import psutil

from service.works.blobs import Blobs

T = TypeVar("T")


class Workplace:
    def __init__(self, blobs: Blobs, folder: Path) -> None:
        self._blobs = blobs
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """One attempt's own."""
        with tempfile.TemporaryDirectory(prefix=_prefix(os.getpid()), dir=self._folder) as name:
            yield Path(name)

    def fetch(self, digests: Iterable[str]) -> dict[str, str]:
        """Digest -> a file with that content, checked."""
        return {digest: str(self._blobs.path(digest)) for digest in digests}

    def store(self, result: Path) -> str:
        return self._blobs.put_file(result)

    def sweep(self) -> None:
        """Before the first attempt: what workers of this machine left that live no longer."""
        mine = f"{socket.gethostname()}-"
        for left in self._folder.glob(f"{mine}*"):
            pid = int(left.name.removeprefix(mine).split("-")[0])
            if pid == os.getpid() or not psutil.pid_exists(pid):
                shutil.rmtree(left, ignore_errors=True)


def _prefix(pid: int) -> str:
    return f"{socket.gethostname()}-{pid}-"


def in_background(call: Callable[[], T]) -> Future[T]:
    """In a thread that keeps no process alive."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  told to who waits
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
