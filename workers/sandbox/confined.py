"""Runs an operation on files in a fresh child that reaches nothing else.

The child has an empty environment, no open files, no network, and its libraries to read. What it
writes is anybody's: the caller judges it with the readers for files that strangers send.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from service.contract import plain_text
from workers.processes import Child, Gone
from workers.sandbox import confinement
from workers.sandbox.child import MOST_TEXT, Refused
from workers.sandbox.confinement import KERNELS, Confinement
from workers.sandbox.limits import Limits

__all__ = ["Refused", "Stopped", "Unavailable", "run"]

_OURS = Path(__file__).resolve().parents[2]  # where `workers` and `service` are found
_START = "import sys, json; sys.path[:] = json.loads(sys.argv[2]); "
_START += "from workers.sandbox.child import main; main()"
_PACKAGES = ("workers", "service")
_KEPT = ("LD_LIBRARY_PATH",)  # Python may need it to start
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_POLL_SECONDS = 0.1
_LARGEST_ANSWER = 1 << 16  # bytes
_LAST_OUTPUT = 2000  # bytes of the child's stderr that are kept


class Stopped(Exception):
    """The child ended without an answer: by a limit, by a signal, or by an answer that is none."""


class Unavailable(Exception):
    """Nothing can be confined on this machine; the text says why."""


def run(
    operation: str,
    inputs: Sequence[Path],
    outputs: Sequence[Path],
    parameters: Mapping[str, Any] | None = None,
    *,
    limits: Limits = Limits(),
    without: frozenset[str] = frozenset(),
    modules: Sequence[Path] = (),
) -> Mapping[str, Any]:
    """What the operation ("module:function", see `child.Operation`) answers.

    `outputs` do not exist yet; the child may write to them and to nothing else. They are left as
    they are if it fails. `modules`: folders in which Python looks for modules, besides ours and
    those that are installed. Raises Refused with the operation's own text, Stopped, and Unavailable
    unless `without` says that the sandbox is off.
    """
    for output in outputs:
        output.touch(exist_ok=False)
    child, task = start(
        operation,
        inputs,
        outputs,
        parameters or {},
        limits=limits,
        without=without,
        modules=modules,
    )
    try:
        return ask(child, task, limits.seconds)
    finally:
        child.end()


def start(
    operation: str,
    inputs: Sequence[Path],
    outputs: Sequence[Path],
    parameters: Mapping[str, Any],
    *,
    limits: Limits,
    without: frozenset[str],
    modules: Sequence[Path],
    threads: bool = False,
    shared: tuple[int, int] | None = None,
) -> tuple[Child, Mapping[str, Any]]:
    """A child, and the task that it is to be asked first. `shared`: a descriptor that it inherits,
    and its bytes; with one, the child stays and answers requests (`answering`).
    """
    lacking = None if without >= KERNELS else confinement.missing()
    if lacking is not None:
        raise Unavailable(lacking)
    inputs, outputs = ([each.resolve() for each in given] for given in (inputs, outputs))
    path = [*modules, _OURS, *confinement.libraries()]
    reads = (*modules, *(_OURS / name for name in _PACKAGES), *inputs)
    confined = Confinement(reads, tuple(outputs), threads, limits=limits, without=without)
    task = {
        "confinement": confined.as_json(),
        "operation": operation,
        "inputs": [str(each) for each in inputs],
        "outputs": [str(each) for each in outputs],
        "parameters": dict(parameters),
        "shared": shared,
    }
    found = json.dumps([str(folder) for folder in path])
    command = [sys.executable, "-I", "-B", "-c", _START, str(os.getpid()), found]
    kept = () if shared is None else shared[:1]
    child = Child(command, _environment(), _LAST_OUTPUT, _LARGEST_ANSWER, kept)
    return child, task


def ask(child: Child, request: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    """What the child answers. Raises Refused, and Stopped, after which it must be ended."""
    until = time.monotonic() + seconds
    try:
        child.send(request)
        while (body := child.receive(_POLL_SECONDS)) is None:
            if time.monotonic() > until:
                raise Stopped(f"took longer than {seconds:g} s")
    except Gone as gone:
        child.end()
        last = plain_text.quoted(child.last_output.rpartition("\n")[2])
        raise Stopped(f"{gone}; its last output: {last}" if last else str(gone)) from None
    return _parsed(body)


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
