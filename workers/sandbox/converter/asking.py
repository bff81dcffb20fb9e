"""A worker's side of a converter: its tasks go there with their files, open."""

import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from prescore import plain_text
from service.contract.errors import ConverterUnavailable
from workers.sandbox.child import Refused
from workers.sandbox.converter import messages
from workers.sandbox.converter.messages import NoMessage
from workers.sandbox.starting import Stopped, Task, Unavailable

PATIENCE_SECONDS = 20.0  # for a converter that is started again
_AGAIN_SECONDS = 0.2
_SILENCE_SECONDS = 30.0  # without a word that the task still waits for its turn
_GRACE_SECONDS = 15.0  # after which the converter itself would have ended the child


class There:
    """A child of the converter at this socket."""

    def __init__(self, path: Path, task: Task) -> None:
        self._path = path
        self._seconds = task.limits.seconds + _GRACE_SECONDS
        with _opened(task) as files:
            self._connection = _connected(path, PATIENCE_SECONDS)
            try:
                messages.send(self._connection, _asked(task), files)
                self.pid = self._begun()
            except (OSError, NoMessage) as error:
                self.end()
                raise self._lost(error) from None
            except BaseException:
                self.end()
                raise

    def begin(self) -> Mapping[str, Any]:
        try:
            found, _ = messages.receive(self._connection, self._seconds)
        except NoMessage as error:
            self.end()
            raise self._lost(error) from None
        return _judged(found)

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            messages.send(self._connection, request)
        except OSError as error:
            self.end()
            raise self._lost(error) from None
        return self.begin()

    def is_alive(self) -> bool:
        """Whether the converter is there; a child that has ended is told of when it is asked."""
        return self._connection.fileno() >= 0 and messages.is_quiet(self._connection)

    def end(self) -> None:
        """The converter kills the child, with all that it has started."""
        self._connection.close()

    def _begun(self) -> int:
        """Wait for a place; the child's id there."""
        while True:
            found, _ = messages.receive(self._connection, _SILENCE_SECONDS)
            match found:
                case {"began": int(pid)}:
                    return pid
                case {"waits": _}:
                    continue
            _judged(found)
            raise NoMessage("answered before it began")

    def _lost(self, error: Exception) -> ConverterUnavailable:
        return ConverterUnavailable(
            f"the converter at {self._path} gave no answer ({plain_text.quoted(str(error))}): "
            "what it was asked is tried again"
        )


def check(path: Path, seconds: float = 3.0) -> None:
    """Raise ConverterUnavailable unless a converter answers at this socket."""
    connection = _connected(path, 0.0)
    with connection:
        try:
            messages.send(connection, {"ping": True})
            found, _ = messages.receive(connection, seconds)
        except (OSError, NoMessage) as error:
            raise ConverterUnavailable(f"the converter at {path}: {error}") from None
        if "pong" not in found:
            raise ConverterUnavailable(f"what listens at {path} is no converter")


def main(path: str) -> None:
    """Of a container's health check."""
    try:
        check(Path(path))
    except ConverterUnavailable as error:
        sys.exit(error.detail)


def _connected(path: Path, patience: float) -> socket.socket:
    until = time.monotonic() + patience
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except OSError as error:
            connection.close()
            if time.monotonic() >= until:
                raise ConverterUnavailable(
                    f"no converter answers at {path}: {error.strerror or error}; "
                    "`prescore worker converter` starts one (PRESCORE_CONVERTER)"
                ) from None
            time.sleep(_AGAIN_SECONDS)
        else:
            return connection


@contextmanager
def _opened(task: Task) -> Iterator[list[int]]:
    """The task's files, in the order in which a converter expects them."""
    with ExitStack() as opened:
        files = []
        for paths, how in ((task.inputs, os.O_RDONLY), (task.outputs, os.O_RDWR)):
            for path in paths:
                files.append(os.open(path, how | os.O_CLOEXEC))
                opened.callback(os.close, files[-1])
        if task.shared is not None:
            files.append(task.shared[0])
        yield files


def _asked(task: Task) -> dict[str, Any]:
    return {
        "operation": task.operation,
        "inputs": len(task.inputs),
        "outputs": len(task.outputs),
        "parameters": dict(task.parameters),
        "limits": vars(task.limits),
        "threads": task.threads,
        "shared": None if task.shared is None else task.shared[1],
    }


def _judged(found: Mapping[str, Any]) -> Mapping[str, Any]:
    match found:
        case {"answer": dict(answer)}:
            return answer
        case {"problem": str(text)}:
            raise Refused(text)
        case {"stopped": str(text)}:
            raise Stopped(text)
        case {"unavailable": str(text)}:
            raise Unavailable(text)
        case {"lost": str(text)}:
            raise ConverterUnavailable(f"the converter's child {text}: it is tried again")
        case {"refused": str(text)}:
            raise ConverterUnavailable(f"the converter does not perform this: {text}")
    raise ConverterUnavailable("the converter answered something else than was asked")
