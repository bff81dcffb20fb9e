"""The converter: listens at a Unix socket, and starts the sandbox's children for who asks there.

A client gives the name of a task (`tasks.py`), its parameters and limits, and open files; it gets
how the child ended. The child reaches these files, by their numbers, and nothing else: there need
not be any other file of a worker's where the converter is. A client that leaves ends its child.
"""

import contextlib
import os
import resource
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import BoundedSemaphore, Thread
from typing import Annotated, Any

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.contract.errors import InvalidSetting
from workers.sandbox.child import Refused
from workers.sandbox.converter import messages
from workers.sandbox.converter.messages import NoMessage
from workers.sandbox.converter.tasks import TASKS, Kind
from workers.sandbox.limits import Limits
from workers.sandbox.starting import Here, Stopped, Task, Unavailable

log = structlog.get_logger()

_CONNECTIONS = 128  # at once: others wait until one of them has ended
_STAYING = 32  # children that stay at once; one worker has at most two
_ASK_SECONDS = 10.0  # for a client to say what it wants
_TURN_SECONDS = 1.0  # after which who waits for a place is told so
_LOOK_SECONDS = 0.1
_PAUSE_SECONDS = 0.1  # after a connection that could not be taken
_HOUR = 3600.0

Bytes = Annotated[int, Field(ge=0, le=1 << 50)]


class _Limits(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    seconds: float = Field(gt=0, le=_HOUR)
    cpu_seconds: int | None = Field(gt=0, le=int(_HOUR))
    memory: Bytes
    file_size: Bytes
    files: int = Field(ge=0, le=1024)


class _Asked(BaseModel):
    """`inputs` and `outputs`: how many of the files are these; `shared`: bytes of the memory that
    is the last file.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    operation: str
    inputs: int = Field(ge=0)
    outputs: int = Field(ge=0)
    parameters: dict[str, Any]
    limits: _Limits
    threads: bool
    shared: int | None = Field(gt=0, le=1 << 30)


class _Left(Exception):
    """The client is not there any more, or speaks where it has to wait."""


@dataclass(frozen=True)
class Bounds:
    """`children`: how many task at once, beside those that stay. `memory`: bytes that each may
    have, whatever is asked for.
    """

    children: int
    memory: int


class Converter:
    """`without`, `modules`: as in `confined.run`."""

    def __init__(
        self,
        path: Path,
        bounds: Bounds,
        *,
        without: frozenset[str] = frozenset(),
        tasks: Mapping[str, Kind] = TASKS,
        modules: Sequence[Path] = (),
    ) -> None:
        self._path = path
        self._memory = bounds.memory
        self._without = without
        self._tasks = tasks
        self._modules = modules
        self._connections = BoundedSemaphore(_CONNECTIONS)
        self._places: Mapping[Kind, BoundedSemaphore] = {
            "once": BoundedSemaphore(bounds.children),
            "stays": BoundedSemaphore(_STAYING),
        }

    def serve(self) -> None:
        """Until a signal ends this process; its children end with it."""
        _open_many_files()
        with _listening(self._path) as listener:
            log.info("listening", socket=str(self._path))
            while True:
                self._connections.acquire()
                try:
                    connection, _ = listener.accept()
                    Thread(target=self._handle, args=(connection,), daemon=True).start()
                except (OSError, RuntimeError) as error:  # no files or threads are left
                    self._connections.release()
                    log.warning("a connection could not be taken", error=str(error))
                    time.sleep(_PAUSE_SECONDS)

    def _handle(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._answer(connection)
        except (_Left, NoMessage, OSError) as error:
            log.info("a client has left, or was left", why=str(error)[:200])
        except Exception:
            log.exception("a task could not be performed; the converter goes on")
        finally:
            self._connections.release()

    def _answer(self, connection: socket.socket) -> None:
        most = messages.MOST_FILES
        found, files = messages.receive(connection, _ASK_SECONDS, most_files=most)
        try:
            if found == {"ping": True}:
                messages.send(connection, {"pong": True})
                return
            try:
                task = self._judged(found, files)
            except ValueError as error:
                log.warning("refused", why=str(error)[:500])
                messages.send(connection, {"refused": str(error)[:500]})
                return
            self._perform(connection, task, files)
        finally:
            messages.close(files)

    def _judged(self, found: Mapping[str, Any], files: Sequence[int]) -> Task:
        """Raises ValueError with what is wrong."""
        try:
            asked = _Asked.model_validate(found)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{'/'.join(map(str, first['loc']))}: {first['msg']}") from None
        kind = self._tasks.get(asked.operation)
        if kind is None:
            raise ValueError(f"no task of the name {asked.operation!r:.100}")
        if (asked.shared is not None) != (kind == "stays"):
            raise ValueError("expected shared memory of a task that stays, and of no other one")
        if len(files) != asked.inputs + asked.outputs + (asked.shared is not None):
            raise ValueError(f"expected other files than the {len(files)} that came")
        for each in files:
            if not _is_file(each):
                raise ValueError("expected files, found a folder or something else")
        paths = [Path(f"/proc/self/fd/{each}") for each in files]
        limits = Limits(**asked.limits.model_dump())
        return Task(
            asked.operation,
            paths[: asked.inputs],
            paths[asked.inputs :][: asked.outputs],
            asked.parameters,
            replace(
                limits, memory=min(limits.memory, self._memory), files=limits.files + len(files)
            ),
            asked.threads,
            None if asked.shared is None else (files[-1], asked.shared),
        )

    def _perform(self, connection: socket.socket, task: Task, files: Sequence[int]) -> None:
        stays = task.shared is not None
        began, outcome = time.monotonic(), {"left": ""}
        with self._place(connection, "stays" if stays else "once"):
            try:
                child = self._started(connection, task, files)
            except Unavailable as unavailable:
                messages.send(connection, {"unavailable": str(unavailable)})
                return
            try:
                messages.send(connection, {"began": child.pid})
                outcome = _outcome(child.begin)
                messages.send(connection, outcome)
                while stays and "answer" in outcome:
                    request, _ = messages.receive(connection)
                    outcome = _outcome(lambda request=request: child.ask(request))  # type: ignore[misc]
                    messages.send(connection, outcome)
            finally:
                child.end()
                seconds = round(time.monotonic() - began, 2)
                log.info("end", task=task.operation, seconds=seconds, how=_how(outcome))

    def _started(self, connection: socket.socket, task: Task, files: Sequence[int]) -> Here:
        def look() -> None:
            if not messages.is_quiet(connection):
                raise _Left("it has left while its task was performed")

        return Here(
            task,
            without=self._without,
            modules=self._modules,
            inherited=files if task.shared is None else files[:-1],
            meanwhile=look,
        )

    @contextlib.contextmanager
    def _place(self, connection: socket.socket, kind: Kind) -> Iterator[None]:
        """Wait for one, as long as the client does."""
        places = self._places[kind]
        told = time.monotonic()
        while not places.acquire(timeout=_LOOK_SECONDS):
            if not messages.is_quiet(connection):
                raise _Left("it has left before it was its turn")
            if time.monotonic() - told > _TURN_SECONDS:
                told = time.monotonic()
                messages.send(connection, {"waits": True})
        try:
            yield
        finally:
            places.release()


def _outcome(ask: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    try:
        return {"answer": ask()}
    except Refused as refused:
        return {"problem": str(refused)}
    except Stopped as stopped:  # none of its limits kills: memory was short, for others' sake too
        return {"lost" if stopped.killed else "stopped": str(stopped)}


def _how(outcome: Mapping[str, Any]) -> str:
    """For logs: what was answered is nobody's business."""
    kind, told = next(iter(outcome.items()))
    return kind if kind == "answer" else f"{kind}: {told}"[:300]


def _is_file(descriptor: int) -> bool:
    """A folder is none: what lies above it can be reached from it."""
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


@contextlib.contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    """For this user alone. What a killed converter has left is taken away; raises InvalidSetting
    where another one listens, or nobody can.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        before = os.umask(0o177)
        try:
            _clear(path)
            listener.bind(str(path))
        except OSError as error:
            raise InvalidSetting(
                f"expected a place for a socket at {path}, found {error.strerror or error}"
            ) from None
        finally:
            os.umask(before)
        listener.listen()
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _clear(path: Path) -> None:
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        try:
            other.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise InvalidSetting(f"another converter listens at {path} already")


def _open_many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
