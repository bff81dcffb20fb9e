"""Limits of resources, and privileges given up."""

import ctypes
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.kernel import system_calls

_CAPABILITIES_VERSION = 0x20080522
_OF_FILES = 0b1111  # CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
_SOON = 0.001  # seconds: 0 would be never
_STATM = Path("/proc/self/statm")


@dataclass(frozen=True)
class ChildLimits:
    """Limits of a child: seconds of the clock, seconds of the processor for all its threads (None:
    no limit), bytes of memory beyond its libraries, bytes of each file, open files.
    """

    seconds: float = 120.0
    cpu_seconds: int | None = 120
    memory: int = 4_000_000_000
    file_size: int = 8_000_000_000
    files: int = 64


def apply_limits(limits: ChildLimits) -> None:
    """All but that of memory, which `limit_memory` sets."""
    if limits.cpu_seconds is not None:
        _set(resource.RLIMIT_CPU, limits.cpu_seconds, 1)  # SIGXCPU says why; then comes SIGKILL
    _set(resource.RLIMIT_FSIZE, limits.file_size)
    _set(resource.RLIMIT_NOFILE, limits.files)
    _set(resource.RLIMIT_CORE, 0)
    _set(resource.RLIMIT_MEMLOCK, 0)
    _set(resource.RLIMIT_MSGQUEUE, 0)


def limit_memory(more: int) -> None:
    """Let this process have so many bytes more of addresses than now: libraries have many."""
    pages = int(_STATM.read_text().split()[0])
    _set(resource.RLIMIT_AS, pages * os.sysconf("SC_PAGE_SIZE") + more)


def drop_privileges(*, but_files: bool = False) -> None:
    """Give up the capabilities of root, if this process has them; `but_files`: not those by which
    root reads and writes the files of others.
    """
    head = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    have = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; the later bits after them
    system_calls.call_kernel(
        system_calls.find_call_number("capget"), ctypes.byref(head), ctypes.byref(have)
    )
    kept = _OF_FILES if but_files else 0
    left = (ctypes.c_uint32 * 6)(have[0] & kept, have[1] & kept)
    system_calls.call_kernel(
        system_calls.find_call_number("capset"), ctypes.byref(head), ctypes.byref(left)
    )


@contextmanager
def end_after(seconds: float, late: Exception) -> Iterator[None]:
    """Raise an error in what takes more seconds of the processor, and again each second after that.
    For the main thread; one may be within another.
    """

    def raise_late(*_: object) -> None:
        raise late

    before = signal.signal(signal.SIGPROF, raise_late)
    began = time.process_time()
    outer, _ = signal.setitimer(signal.ITIMER_PROF, max(seconds, _SOON), 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        if outer:
            outer -= time.process_time() - began
            signal.setitimer(signal.ITIMER_PROF, max(outer, _SOON), 1.0)


def _set(name: int, most: int, more: int = 0) -> None:
    _, hard = resource.getrlimit(name)
    if hard != resource.RLIM_INFINITY:
        most, more = min(most, hard), 0
    resource.setrlimit(name, (most, most + more))
