"""Converter: starts the sandbox's children for its clients, which connect to its Unix socket or are
given a connection by the process that it is a part of.

A client gives the name of an operation (`converter_protocol.OPERATIONS`), parameters, limits, and
open files; it gets the end of the child. The child reaches these files, by their numbers, and
nothing else: the converter needs no other file of a worker. A client that leaves ends its child.
"""

import contextlib
import fcntl
import os
import resource
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import BoundedSemaphore, Thread
from typing import Annotated, Any

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.contract.errors import InvalidSetting
from service.contract.settings import Settings
from service.engine import logs
from service.kernel import confinement
from service.kernel.process_limits import ChildLimits
from workers.sandbox import converter_protocol
from workers.sandbox.child import InputRefused
from workers.sandbox.children import ChildStopped, ConfinementUnavailable, LocalChild, OperationCall
from workers.sandbox.converter_protocol import OPERATIONS, MessageError, OperationKind

log = structlog.get_logger()

_CONNECTIONS = 128  # at once: others wait until one of them has ended
_STAYING = 32  # children that stay at once; one worker has at most two
_ASK_SECONDS = 10.0  # for a client to say what it wants
_TURN_SECONDS = 1.0  # after which who waits for a place is told so
_LOOK_SECONDS = 0.1
_PAUSE_SECONDS = 0.1  # after a connection that could not be taken
_HOUR = 3600.0

Bytes = Annotated[int, Field(ge=0, le=1 << 50)]


class _RequestedLimits(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    seconds: float = Field(gt=0, le=_HOUR)
    cpu_seconds: int | None = Field(gt=0, le=int(_HOUR))
    memory: Bytes
    file_size: Bytes
    files: int = Field(ge=0, le=1024)


class _OperationRequest(BaseModel):
    """`inputs` and `outputs`: how many of the files are these; `shared`: bytes of the memory that
    is the last file.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    operation: str
    inputs: int = Field(ge=0)
    outputs: int = Field(ge=0)
    parameters: dict[str, Any]
    limits: _RequestedLimits
    threads: bool
    shared: int | None = Field(gt=0, le=1 << 30)


class _ClientLeft(Exception):
    """The client has left, or sends where it has to wait."""


@dataclass(frozen=True)
class ConverterBounds:
    """`children`: how many work at once, beside those that stay. `memory`: bytes that each may
    have, whatever is asked for.
    """

    children: int
    memory: int


class Converter:
    """`without`, `modules`: as in `operations.run_operation`."""

    def __init__(
        self,
        bounds: ConverterBounds,
        *,
        without: frozenset[str] = frozenset(),
        operations: Mapping[str, OperationKind] = OPERATIONS,
        modules: Sequence[Path] = (),
    ) -> None:
        self._memory = bounds.memory
        self._without = without
        self._operations = operations
        self._modules = modules
        self._connections = BoundedSemaphore(_CONNECTIONS)
        self._places: Mapping[OperationKind, BoundedSemaphore] = {
            "once": BoundedSemaphore(bounds.children),
            "stays": BoundedSemaphore(_STAYING),
        }
        self._children: set[LocalChild] = set()

    @property
    def pids(self) -> list[int]:
        """The ids of its children now."""
        return [child.pid for child in tuple(self._children)]

    def serve(self, path: Path) -> None:
        """Serve clients until a signal ends this process; its children end with it."""
        _open_many_files()
        with _listening(path) as listener:
            log.info("listening", socket=str(path))
            while True:
                try:
                    self.begin(lambda: listener.accept()[0])
                except (OSError, RuntimeError) as error:  # no files or threads are left
                    log.warning("a connection could not be taken", error=str(error))
                    time.sleep(_PAUSE_SECONDS)

    def begin(self, accept: Callable[[], socket.socket]) -> None:
        """Serve the next client in a thread of its own, when there is a place for it."""
        self._connections.acquire()
        try:
            Thread(target=self._handle, args=(accept(),), daemon=True).start()
        except BaseException:
            self._connections.release()
            raise

    def close(self) -> None:
        """End all children."""
        for child in tuple(self._children):
            child.end()

    def _handle(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._answer(connection)
        except (_ClientLeft, MessageError, OSError) as error:
            log.info("a client has left, or was left", why=str(error)[:200])
        except Exception:
            log.exception("an operation could not be performed; the converter goes on")
        finally:
            self._connections.release()

    def _answer(self, connection: socket.socket) -> None:
        most = converter_protocol.MOST_FILES
        found, files = converter_protocol.receive_message(connection, _ASK_SECONDS, most_files=most)
        try:
            if found == {"ping": True}:
                converter_protocol.send_message(connection, {"pong": True})
                return
            try:
                call = self._judged(found, files)
            except ValueError as error:
                log.warning("refused", why=str(error)[:500])
                converter_protocol.send_message(connection, {"refused": str(error)[:500]})
                return
            self._perform(connection, call, files)
        finally:
            converter_protocol.close_files(files)

    def _judged(self, found: Mapping[str, Any], files: Sequence[int]) -> OperationCall:
        """Validate a request. Raises ValueError with the fault."""
        try:
            asked = _OperationRequest.model_validate(found)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{'/'.join(map(str, first['loc']))}: {first['msg']}") from None
        kind = self._operations.get(asked.operation)
        if kind is None:
            raise ValueError(f"no operation of the name {asked.operation!r:.100}")
        if (asked.shared is not None) != (kind == "stays"):
            raise ValueError("expected shared memory of an operation that stays, and of no other")
        if len(files) != asked.inputs + asked.outputs + (asked.shared is not None):
            raise ValueError(f"expected other files than the {len(files)} that came")
        for each in files:  # what lies above a folder can be reached from it
            if not stat.S_ISREG(os.fstat(each).st_mode):
                raise ValueError("expected files, found a folder or something else")
        given = [fcntl.fcntl(each, fcntl.F_GETFL) for each in files]
        # The child opens them again: nobody gets by that what he could not open himself.
        if any(flags & os.O_PATH or flags & os.O_ACCMODE == os.O_WRONLY for flags in given):
            raise ValueError("expected files that are open to be read")
        if any(flags & os.O_ACCMODE != os.O_RDWR for flags in given[asked.inputs :]):
            raise ValueError("expected outputs that are open to be written")
        paths = [Path(f"/proc/self/fd/{each}") for each in files]
        limits = ChildLimits(**asked.limits.model_dump())
        return OperationCall(
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

    def _perform(
        self, connection: socket.socket, call: OperationCall, files: Sequence[int]
    ) -> None:
        stays = call.shared is not None
        began, outcome = time.monotonic(), {"left": ""}
        with self._place(connection, "stays" if stays else "once"):
            try:
                child = self._started(connection, call, files)
            except ConfinementUnavailable as unavailable:
                converter_protocol.send_message(connection, {"unavailable": str(unavailable)})
                return
            self._children.add(child)
            try:
                converter_protocol.send_message(connection, {"began": child.pid})
                outcome = _outcome(child.begin)
                converter_protocol.send_message(connection, outcome)
                while stays and "answer" in outcome:
                    asked, _ = converter_protocol.receive_message(connection)
                    outcome = _outcome(lambda asked=asked: _ask(child, asked))  # type: ignore[misc]
                    converter_protocol.send_message(connection, outcome)
            finally:
                child.end()
                self._children.discard(child)
                seconds = round(time.monotonic() - began, 2)
                log.info("end", operation=call.operation, seconds=seconds, how=_how(outcome))

    def _started(
        self, connection: socket.socket, call: OperationCall, files: Sequence[int]
    ) -> LocalChild:
        def look() -> None:
            if not converter_protocol.is_quiet(connection):
                raise _ClientLeft("it has left while its operation was performed")

        return LocalChild(
            call,
            without=self._without,
            modules=self._modules,
            inherited=files if call.shared is None else files[:-1],
            meanwhile=look,
        )

    @contextlib.contextmanager
    def _place(self, connection: socket.socket, kind: OperationKind) -> Iterator[None]:
        """Wait for one, as long as the client does."""
        places = self._places[kind]
        told = time.monotonic()
        while not places.acquire(timeout=_LOOK_SECONDS):
            if not converter_protocol.is_quiet(connection):
                raise _ClientLeft("it has left before it was its turn")
            if time.monotonic() - told > _TURN_SECONDS:
                told = time.monotonic()
                converter_protocol.send_message(connection, {"waits": True})
        try:
            yield
        finally:
            places.release()


def _ask(child: LocalChild, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    match asked:
        case {"request": dict(request), "seconds": None | float() | int() as seconds}:
            return child.ask(request, seconds)
    raise MessageError("expected a request and its seconds")


def _outcome(ask: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    try:
        return {"answer": ask()}
    except InputRefused as refused:
        return {"problem": str(refused)}
    except ChildStopped as stopped:
        # None of its limits kills: memory was short, for others' sake too.
        return {"lost" if stopped.killed else "stopped": str(stopped)}


def _how(outcome: Mapping[str, Any]) -> str:
    """Describe an outcome for logs, without its answer, which is nobody's business."""
    kind, told = next(iter(outcome.items()))
    return kind if kind == "answer" else f"{kind}: {told}"[:300]


@contextlib.contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    """Listen at a socket for this user alone. Remove what a killed converter has left; raise
    InvalidSetting where another one listens, or nobody can.
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


def serve_converter(path: Path, children: int | None, settings: Settings) -> None:
    """Serve as a converter until SIGTERM or SIGINT."""
    logs.configure_logs("converter", settings.log_level)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit())
    if confinement.explain_missing_sandbox() is None:
        confinement.isolate_process()
    bounds = ConverterBounds(children or len(os.sched_getaffinity(0)), settings.task_memory)
    without = confinement.list_skipped_mechanisms(settings.sandbox)
    Converter(bounds, without=without).serve(path)
