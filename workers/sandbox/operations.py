"""Operations on files, run in a fresh child that reaches nothing else.

The child has an empty environment, no open files but those it is for, no network, and its libraries
to read. What it writes is anybody's: the caller judges it with the readers for files that strangers
send. This process starts it, or a converter does (`choose_converter`).
"""

import fcntl
import mmap
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from service.kernel.process_limits import ChildLimits
from workers.sandbox.child import InputRefused
from workers.sandbox.children import (
    ChildStopped,
    ConfinementUnavailable,
    LocalChild,
    OperationCall,
)
from workers.sandbox.converter_client import ConverterAddress, ConverterChild

__all__ = ["ChildStopped", "ConfinementUnavailable", "InputRefused", "run_operation"]


class _ConverterChoice:
    """Choice of a converter, made once for this process, where it begins."""

    converter: ConverterAddress | None = None


def choose_converter(converter: ConverterAddress | None) -> None:
    """Have the converter at this address start the children; without one, this process does it."""
    _ConverterChoice.converter = converter


def run_operation(
    operation: str,
    inputs: Sequence[Path],
    outputs: Sequence[Path],
    parameters: Mapping[str, Any] | None = None,
    *,
    limits: ChildLimits = ChildLimits(),
    without: frozenset[str] = frozenset(),
    modules: Sequence[Path] = (),
) -> Mapping[str, Any]:
    """Run an operation ("module:function", see `child.Operation`) and return its answer.

    `outputs` do not exist yet; the child may write to them and to nothing else. They are left as
    they are if it fails. `modules`: folders in which Python looks for modules, besides ours and
    those that are installed. A converter knows itself what it leaves out and where it looks.

    Raises InputRefused with the operation's own text, ChildStopped, and ConfinementUnavailable
    unless `without` says that the sandbox is off; and ConverterUnavailable, which says nothing of
    the inputs.
    """
    for output in outputs:
        output.touch(exist_ok=False)
    call = OperationCall(operation, inputs, outputs, parameters or {}, limits)
    child = start_child(call, without=without, modules=modules)
    try:
        return child.begin()
    finally:
        child.end()


def start_child(
    call: OperationCall, *, without: frozenset[str] = frozenset(), modules: Sequence[Path] = ()
) -> LocalChild | ConverterChild:
    if _ConverterChoice.converter is not None:
        return ConverterChild(_ConverterChoice.converter, call)
    inputs, outputs = ([each.resolve() for each in given] for given in (call.inputs, call.outputs))
    return LocalChild(
        replace(call, inputs=inputs, outputs=outputs), without=without, modules=modules
    )


# The child could otherwise cut the memory off, and this process would die where it reads it.
_FIXED_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class StayingChild:
    """Child that stays: its operation (`child.Opener`) opens files once, then answers requests.

    `shared`: bytes of memory that both processes see. The child may write there at any time, and
    anything: a reader takes a copy and judges that. `limits.seconds` are those of each answer.
    Raises InputRefused, ChildStopped and ConfinementUnavailable, as `run_operation` does.
    """

    def __init__(
        self,
        operation: str,
        inputs: Sequence[Path],
        parameters: Mapping[str, Any] | None = None,
        *,
        shared: int,
        limits: ChildLimits = ChildLimits(cpu_seconds=None),
        without: frozenset[str] = frozenset(),
        threads: bool = False,
        modules: Sequence[Path] = (),
    ) -> None:
        descriptor = _memory(shared)
        try:
            self.memory = memoryview(mmap.mmap(descriptor, shared))
            asked = parameters or {}
            call = OperationCall(
                operation, inputs, [], asked, limits, threads, (descriptor, shared)
            )
            self._child = start_child(call, without=without, modules=modules)
        finally:
            os.close(descriptor)
        self._end = weakref.finalize(self, self._child.end)
        self.told = self._exchange(self._child.begin)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_open(self) -> bool:
        return self._end.alive and self._child.is_alive()

    def ask(self, request: Mapping[str, Any], seconds: float | None = None) -> Mapping[str, Any]:
        """Return the child's answer, which may take less than the limits say. Raises InputRefused
        with the child's own text, and ChildStopped where there is none; then, and after any other
        error, the child has ended.
        """
        if not self.is_open:
            raise ChildStopped("has ended already")
        return self._exchange(lambda: self._child.ask(request, seconds))

    def close(self) -> None:
        self._end()

    def _exchange(self, ask: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        try:
            return ask()
        except BaseException:  # nobody waits for what comes next
            self.close()
            raise


def _memory(size: int) -> int:
    descriptor = os.memfd_create("prescore", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _FIXED_SIZE)
    return descriptor
