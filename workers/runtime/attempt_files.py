"""Files of attempts: fetches inputs, and stores results.

An attempt's folder is deleted at its end; folders of killed workers are deleted by the next worker.
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

from service.engine.blobs import Blobs

T = TypeVar("T")


class AttemptFiles:
    def __init__(self, blobs: Blobs, folder: Path) -> None:
        self._blobs = blobs
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A temporary folder for one attempt."""
        prefix = f"{socket.gethostname()}-{os.getpid()}-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self._folder) as name:
            yield Path(name)

    def fetch(self, digests: Iterable[str]) -> dict[str, str]:
        """Digest -> path of a checked file with that content."""
        return {digest: str(self._blobs.path(digest)) for digest in digests}

    def store(self, result: Path) -> str:
        return self._blobs.put_file(result)

    def store_again(self, digest: str, result: Path) -> None:
        """Store a result that was collected as garbage before the record named it."""
        if not self._blobs.has(digest):
            self._blobs.put_file(result)

    def sweep(self) -> None:
        """Delete the folders of this machine's dead workers; call it before the first attempt."""
        mine = f"{socket.gethostname()}-"
        for left in self._folder.glob(f"{mine}*"):
            pid = int(left.name.removeprefix(mine).split("-")[0])
            if pid == os.getpid() or not psutil.pid_exists(pid):
                shutil.rmtree(left, ignore_errors=True)


def run_in_background(call: Callable[[], T]) -> Future[T]:
    """Run `call` in a daemon thread."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  raised where the result is awaited
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
