"""Files of attempts: fetches inputs, and stores results.

A runner has a folder of its own, since its executor may read and write nothing else: `inputs` has
second names of the objects that an attempt reads, `work` is for results and temporary files. The
next worker deletes the folders of killed ones.
"""

import os
import shutil
import socket
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TypeVar

import psutil

from service.engine.blobs import Blobs

T = TypeVar("T")


class ResultRefused(Exception):
    """The executor's result is none that is stored; the text says why."""


class AttemptFiles:
    """`inputs` and `work`: the folders of one runner, as long as this object is there."""

    def __init__(self, blobs: Blobs, folder: Path) -> None:
        self._blobs = blobs
        folder.mkdir(parents=True, exist_ok=True)
        prefix = f"{socket.gethostname()}-{os.getpid()}-"
        own = Path(tempfile.mkdtemp(prefix=prefix, dir=folder)).resolve()
        weakref.finalize(self, shutil.rmtree, own, ignore_errors=True)
        self.inputs, self.work = own / "inputs", own / "work"
        for each in (self.inputs, self.work):
            each.mkdir()

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder for one attempt; at its end, this and all inputs are deleted."""
        try:
            yield Path(tempfile.mkdtemp(dir=self.work))
        finally:
            _empty(self.inputs)
            _empty(self.work)

    def fetch(self, digests: Iterable[str]) -> dict[str, str]:
        """Digest -> path of a checked file with that content."""
        return {digest: str(self._name(digest)) for digest in dict.fromkeys(digests)}

    def _name(self, digest: str) -> Path:
        """A second name of the object; a copy where its file system is another one."""
        found, named = self._blobs.path(digest), self.inputs / digest.removeprefix("sha256:")
        try:
            named.hardlink_to(found)
        except FileExistsError:  # by an attempt that was ended while it fetched
            pass
        except OSError:
            shutil.copyfile(found, named)
        return named

    def store(self, result: Path) -> str:
        check_result(result)
        return self._blobs.put_file(result)

    def store_again(self, digest: str, result: Path) -> None:
        """Store a result that was collected as garbage before the record named it."""
        if not self._blobs.has(digest):
            self._blobs.put_file(result)


def sweep_attempts(folder: Path) -> None:
    """Delete the folders of this machine's dead workers, also of one that had this process's id, as
    in containers: to be called before this process has folders of its own.
    """
    mine = f"{socket.gethostname()}-"
    for left in folder.glob(f"{mine}*"):
        pid = int(left.name.removeprefix(mine).split("-")[0])
        if pid == os.getpid() or not psutil.pid_exists(pid):
            shutil.rmtree(left, ignore_errors=True)


def check_result(path: Path) -> None:
    """Raise ResultRefused unless a result is a file that only its folder names: by a link or
    another name, an executor would have something stored that it may not read.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise ResultRefused("expected a file with the result, found none") from None
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise ResultRefused("expected a plain file with the result, found a link or something else")


def _empty(folder: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)


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
