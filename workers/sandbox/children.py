"""Children in the sandbox, started by this process, and requests to them. Code that needs a child
calls `operations.py`, which decides whether this process or a converter starts it.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import prescore
import service
import workers
from prescore import plain_text
from service.kernel import confinement
from service.kernel.confinement import KERNELS, Confinement
from service.kernel.process_limits import ChildLimits
from workers.processes import ChildGone, ChildProcess
from workers.sandbox.child import MOST_TEXT, InputRefused

OUR_PACKAGES = [Path(each.__path__[0]).resolve() for each in (workers, service, prescore)]
_START = "import sys, json; sys.path[:] = json.loads(sys.argv[2]); "
_START += "from workers.sandbox.child import main; main()"
_KEPT = ("LD_LIBRARY_PATH",)  # Python may need it to start
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_POLL_SECONDS = 0.1
_LARGEST_ANSWER = 1 << 16  # bytes
_LAST_OUTPUT = 2000  # bytes of the child's stderr that are kept


class ChildStopped(Exception):
    """The child ended without an answer: by a limit, by a signal, or by an answer that is none.
    `killed`: by SIGKILL, which the system sends where memory is short.
    """

    def __init__(self, text: str, *, killed: bool = False) -> None:
        super().__init__(text)
        self.killed = killed


class ConfinementUnavailable(Exception):
    """Nothing can be confined on this machine; the text says why."""


@dataclass(frozen=True)
class OperationCall:
    """Call of an operation ("module:function") by a child, with the files that it may read and
    those that it may write. `shared`: a descriptor that it inherits, and its bytes; with one, the
    child stays and answers requests (`operations.StayingChild`).
    """

    operation: str
    inputs: Sequence[Path]
    outputs: Sequence[Path]
    parameters: Mapping[str, Any]
    limits: ChildLimits
    threads: bool = False
    shared: tuple[int, int] | None = None


class LocalChild:
    """A child of this process. `inherited`: descriptors that it gets under the same numbers, beside
    the shared one; `meanwhile` is called again and again while it is asked.
    """

    def __init__(
        self,
        call: OperationCall,
        *,
        without: frozenset[str] = frozenset(),
        modules: Sequence[Path] = (),
        inherited: Sequence[int] = (),
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        lacking = None if without >= KERNELS else confinement.explain_missing_sandbox()
        if lacking is not None:
            raise ConfinementUnavailable(lacking)
        self._seconds = call.limits.seconds
        self._meanwhile = meanwhile
        self._first = _message(call, modules, without)
        folders = dict.fromkeys((*modules, *(package.parent for package in OUR_PACKAGES)))
        path = json.dumps([str(each) for each in (*folders, *confinement.list_libraries())])
        command = [sys.executable, "-I", "-B", "-c", _START, str(os.getpid()), path]
        kept = (*inherited, *(() if call.shared is None else call.shared[:1]))
        self._child = ChildProcess(command, _environment(), _LAST_OUTPUT, _LARGEST_ANSWER, kept)

    @property
    def pid(self) -> int:
        return self._child.pid

    def begin(self) -> Mapping[str, Any]:
        """Begin the operation; return its first answer."""
        return self.ask(self._first)

    def ask(self, request: Mapping[str, Any], seconds: float | None = None) -> Mapping[str, Any]:
        """Ask the child; return its answer, which may take so long, at most as long as its limits
        say. Raises InputRefused, and ChildStopped, after which it must be ended.
        """
        seconds = self._seconds if seconds is None else min(seconds, self._seconds)
        until = time.monotonic() + seconds
        try:
            self._child.send(request)
            while (body := self._child.receive(_POLL_SECONDS)) is None:
                if time.monotonic() > until:
                    raise ChildStopped(f"took longer than {seconds:g} s")
                self._meanwhile()
        except ChildGone as gone:
            self.end()
            last = plain_text.quoted(self._child.last_output.rpartition("\n")[2])
            text = f"{gone}; its last output: {last}" if last else str(gone)
            killed = self._child.ended_with == -signal.SIGKILL
            raise ChildStopped(text, killed=killed) from None
        return _parsed(body)

    def is_alive(self) -> bool:
        return self._child.is_alive()

    def end(self) -> str:
        return self._child.end()


def _message(
    call: OperationCall, modules: Sequence[Path], without: frozenset[str]
) -> dict[str, Any]:
    """The call as a child reads it (`child.main`)."""
    reads = (*modules, *OUR_PACKAGES, *call.inputs)
    confined = Confinement(
        reads, tuple(call.outputs), threads=call.threads, limits=call.limits, without=without
    )
    return {
        "confinement": confined.as_json(),
        "operation": call.operation,
        "inputs": [str(each) for each in call.inputs],
        "outputs": [str(each) for each in call.outputs],
        "parameters": dict(call.parameters),
        "shared": call.shared,
    }


def _parsed(body: bytes) -> Mapping[str, Any]:
    """Parse a child's message, which may be anything."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise ChildStopped("answered what is no JSON") from None
    match found:
        case {"answer": dict(answer)}:
            return answer
        case {"problem": str(problem)}:
            raise InputRefused(plain_text.quoted(problem[:MOST_TEXT]))
    raise ChildStopped("answered something else than was asked")


def _environment() -> dict[str, str]:
    return {**_ENVIRONMENT, **{name: os.environ[name] for name in _KEPT if name in os.environ}}
