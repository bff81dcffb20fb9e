"""A child in the sandbox that stays: it opens files once, and then answers requests about them.

What is too large for JSON lies in memory that both processes see. The child may write there at any
time, and anything: who reads it takes a copy and judges that.
"""

import fcntl
import mmap
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workers.sandbox import confined
from workers.sandbox.confined import Stopped
from workers.sandbox.limits import Limits
from workers.sandbox.starting import Task

# The child could otherwise cut the memory off, and this process would die where it reads it.
_FIXED_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class Answering:
    """Starts a child and has it open its files: an operation "module:function" (`child.Opener`).

    `shared`: bytes of memory for both. `limits.seconds` are those of each answer. Raises Refused,
    Stopped and Unavailable, as `confined.run` does.
    """

    def __init__(
        self,
        operation: str,
        inputs: Sequence[Path],
        parameters: Mapping[str, Any] | None = None,
        *,
        shared: int,
        limits: Limits = Limits(cpu_seconds=None),
        without: frozenset[str] = frozenset(),
        threads: bool = False,
        modules: Sequence[Path] = (),
    ) -> None:
        descriptor = _memory(shared)
        try:
            self.memory = memoryview(mmap.mmap(descriptor, shared))
            asked = parameters or {}
            task = Task(operation, inputs, [], asked, limits, threads, (descriptor, shared))
            self._child = confined.start(task, without=without, modules=modules)
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

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Its answer. Raises Refused with the child's own text, and Stopped where there is none;
        then, and after any other error, the child has ended.
        """
        if not self.is_open:
            raise Stopped("has ended already")
        return self._exchange(lambda: self._child.ask(request))

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
