"""Starts a child that confines itself, and asks it. Who wants a child asks `confined.py`, which
knows whether this process starts it or a converter does.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import prescore
import service
import workers
from prescore import plain_text
from workers.processes import Child, Gone
from workers.sandbox import confinement
from workers.sandbox.child import MOST_TEXT, Refused
from workers.sandbox.confinement import KERNELS, Confinement
from workers.sandbox.limits import Limits

_OURS = [Path(each.__path__[0]).resolve() for each in (workers, service, prescore)]
_START = "import sys, json; sys.path[:] = json.loads(sys.argv[2]); "
_START += "from workers.sandbox.child import main; main()"
_KEPT = ("LD_LIBRARY_PATH",)  # Python may need it to start
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_POLL_SECONDS = 0.1
_LARGEST_ANSWER = 1 << 16  # bytes
_LAST_OUTPUT = 2000  # bytes of the child's stderr that are kept


class Stopped(Exception):
    """The child ended without an answer: by a limit, by a signal, or by an answer that is none.
    `killed`: by SIGKILL, which the system sends where memory is short.
    """

    def __init__(self, text: str, *, killed: bool = False) -> None:
        super().__init__(text)
        self.killed = killed


class Unavailable(Exception):
    """Nothing can be confined on this machine; the text says why."""


@dataclass(frozen=True)
class Task:
    """What a child is started for: an operation ("module:function"), the files that it may read
    and those that it may write. `shared`: a descriptor that it inherits, and its bytes; with one,
    the child stays and answers requests (`answering`).
    """

    operation: str
    inputs: Sequence[Path]
    outputs: Sequence[Path]
    parameters: Mapping[str, Any]
    limits: Limits
    threads: bool = False
    shared: tuple[int, int] | None = None


class Confined(Protocol):
    """A child, wherever it was started. What it raises: as `confined.run`."""

    @property
    def pid(self) -> int: ...

    def begin(self) -> Mapping[str, Any]:
        """What the operation answers first."""
        ...

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a child that stays answers."""
        ...

    def is_alive(self) -> bool: ...

    def end(self) -> object: ...


def _nothing() -> None:
    """What is done while a child tasks, unless it is told."""


class Here:
    """A child of this process. `inherited`: descriptors that it gets under the same numbers, beside
    the shared one; `meanwhile` is called again and again while it is asked.
    """

    def __init__(
        self,
        task: Task,
        *,
        without: frozenset[str] = frozenset(),
        modules: Sequence[Path] = (),
        inherited: Sequence[int] = (),
        meanwhile: Callable[[], None] = _nothing,
    ) -> None:
        lacking = None if without >= KERNELS else confinement.missing()
        if lacking is not None:
            raise Unavailable(lacking)
        self._seconds = task.limits.seconds
        self._meanwhile = meanwhile
        self._first = _message(task, modules, without)
        folders = dict.fromkeys((*modules, *(package.parent for package in _OURS)))
        path = json.dumps([str(each) for each in (*folders, *confinement.libraries())])
        command = [sys.executable, "-I", "-B", "-c", _START, str(os.getpid()), path]
        kept = (*inherited, *(() if task.shared is None else task.shared[:1]))
        self._child = Child(command, _environment(), _LAST_OUTPUT, _LARGEST_ANSWER, kept)

    @property
    def pid(self) -> int:
        return self._child.pid

    def begin(self) -> Mapping[str, Any]:
        return self.ask(self._first)

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the child answers. Raises Refused, and Stopped, after which it must be ended."""
        until = time.monotonic() + self._seconds
        try:
            self._child.send(request)
            while (body := self._child.receive(_POLL_SECONDS)) is None:
                if time.monotonic() > until:
                    raise Stopped(f"took longer than {self._seconds:g} s")
                self._meanwhile()
        except Gone as gone:
            self.end()
            last = plain_text.quoted(self._child.last_output.rpartition("\n")[2])
            text = f"{gone}; its last output: {last}" if last else str(gone)
            killed = self._child.ended_with == -signal.SIGKILL
            raise Stopped(text, killed=killed) from None
        return _parsed(body)

    def is_alive(self) -> bool:
        return self._child.is_alive()

    def end(self) -> str:
        return self._child.end()


def _message(task: Task, modules: Sequence[Path], without: frozenset[str]) -> dict[str, Any]:
    """The task as a child reads it (`child.main`)."""
    reads = (*modules, *_OURS, *task.inputs)
    confined = Confinement(
        reads, tuple(task.outputs), task.threads, limits=task.limits, without=without
    )
    return {
        "confinement": confined.as_json(),
        "operation": task.operation,
        "inputs": [str(each) for each in task.inputs],
        "outputs": [str(each) for each in task.outputs],
        "parameters": dict(task.parameters),
        "shared": task.shared,
    }


def _parsed(body: bytes) -> Mapping[str, Any]:
    """What the child has sent may be anything."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Stopped("answered what is no JSON") from None
    match found:
        case {"answer": dict(answer)}:
            return answer
        case {"problem": str(problem)}:
            raise Refused(plain_text.quoted(problem[:MOST_TEXT]))
    raise Stopped("answered something else than was asked")


def _environment() -> dict[str, str]:
    return {**_ENVIRONMENT, **{name: os.environ[name] for name in _KEPT if name in os.environ}}
