"""Derived files: made of objects, to be read in parts; a cache on this machine."""

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
    """Files by `place`: the object's place in a store, and what they are made for. The least
    recently used ones are deleted where they take too much room, and are made again.
    """

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
        """A path for a file to be written, which is deleted at the end of the block unless it was
        kept.
        """
        path = self._new()
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def keep(self, path: Path, place: str) -> Path:
        target = self._folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
        self._make_room()
        return target

    def get(self, place: str, make: MakeFile) -> Path:
        """The file; where there is none it is made, once for all who ask meanwhile. Unavailable if
        that takes long.
        """
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

    def _make_room(self) -> None:
        files, held = [], 0
        for file in self._folder.glob("*/*"):
            with suppress(FileNotFoundError):
                status = file.stat()
                held += status.st_size
                files.append((status.st_mtime, status.st_size, file))
        for _, size, file in sorted(files)[:-1]:  # not the one that was just made
            if held <= self._room:
                return
            file.unlink(missing_ok=True)  # who has it open can still read it
            held -= size
