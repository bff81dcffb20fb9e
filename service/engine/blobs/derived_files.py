"""Derived files: made of objects, to be read in parts; a cache on this machine."""

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any

from service.contract.errors import ServiceUnavailable

_ROOM_BYTES = 20_000_000_000
_WAIT_SECONDS = 20.0
_WAITING = 8  # threads: all of them would be all of the API's

MakeFile = Callable[[Path], "Future[Any]"]  # writes the file


class DerivedFiles:
    """Files made of objects, by `place`. Those used longest ago are deleted and made again."""

    def __init__(
        self, folder: Path, new: Callable[[], Path], room_bytes: int = _ROOM_BYTES
    ) -> None:
        """`new`: the path of a file that is deleted some day if it is left there."""
        self._folder = folder
        self._new = new
        self._room = room_bytes
        self._making: dict[str, Future[Path]] = {}
        self._lock = Lock()
        self._waiting = BoundedSemaphore(_WAITING)

    @contextmanager
    def new(self) -> Iterator[Path]:
        """A path for a file, which is deleted at the end of the block unless it was kept."""
        path = self._new()
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def keep(self, path: Path, place: str) -> Path:
        target = self._folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
        delete_oldest(self._folder, self._room, spared=target)
        return target

    def find(self, place: str) -> Path | None:
        """The file; None where it has not been made, or was deleted."""
        found = self._folder / place
        return found if found.exists() else None

    def get(self, place: str, make: MakeFile) -> Path:
        """The file, made once for all who ask meanwhile; ServiceUnavailable if that takes long."""
        found = self._folder / place
        with suppress(FileNotFoundError):
            os.utime(found)
            return found
        if not self._waiting.acquire(blocking=False):
            raise ServiceUnavailable("many wait for data that is prepared just now; try again")
        try:
            return self._begun(place, make).result(_WAIT_SECONDS)
        except TooLate:
            raise ServiceUnavailable("the data is prepared just now; try again") from None
        finally:
            self._waiting.release()

    def _begun(self, place: str, make: MakeFile) -> "Future[Path]":
        with self._lock:
            making = self._making.get(place)
            if making is not None:
                return making
            made: Future[Path] = Future()
            if (self._folder / place).exists():  # it was made since somebody looked
                made.set_result(self._folder / place)
                return made
            self._making[place] = made
        path = self._new()

        def end(making: "Future[Any]") -> None:
            try:
                making.result()
                made.set_result(self.keep(path, place))
            except BaseException as error:  # noqa: BLE001  those who wait raise it
                path.unlink(missing_ok=True)
                made.set_exception(error)
            finally:
                self._making.pop(place, None)

        try:
            make(path).add_done_callback(end)
        except BaseException as error:  # noqa: BLE001  those who wait raise it
            del self._making[place]
            made.set_exception(error)
        return made

    def forget(self, place: str) -> None:
        """Delete all that was made of an object."""
        for file in self._folder.glob(f"{place}.*"):
            file.unlink(missing_ok=True)


def delete_oldest(
    folder: Path, room: int, until: float = math.inf, spared: Path | None = None
) -> None:
    """Delete files of a folder, those first that were used longest ago, until the others fit into
    so many bytes; neither `spared` nor one that was used since that time.
    """
    files, held = [], 0
    for file in folder.glob("*/*"):
        with suppress(FileNotFoundError):
            status = file.stat()
            held += status.st_size
            if file != spared and status.st_mtime < until:
                files.append((status.st_mtime, status.st_size, file))
    for _, size, file in sorted(files):
        if held <= room:
            return
        file.unlink(missing_ok=True)  # a process that has it open can still read it
        held -= size
