"""What reading one input may cost: time of the processor, memory, open files, the disk."""

import os
import resource
import signal
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECONDS = 1.0  # of the processor; no input of the corpus has more than some hundred thousand bytes
MEMORY = 256 << 20  # address space beyond what the process has: 64 MB, and room for fragments
TRACED = 64 << 20  # bytes of Python's own objects, counted for kept inputs alone, since it is slow
_IN_MEMORY = next((at for at in ("/dev/shm",) if Path(at).is_dir()), None)  # noqa: S108  quick


class TooLong(Exception):
    """An input took more of the processor's time than one may."""


@contextmanager
def bounded() -> Iterator[None]:
    """TooLong or MemoryError inside, where an input takes more; AssertionError for open files."""
    opened = _open_files()
    with _timed(), _with_memory():
        yield
    assert _open_files() == opened, "files were left open"


@contextmanager
def traced() -> Iterator[None]:
    """AssertionError where Python's objects took more than TRACED bytes."""
    tracemalloc.start()
    try:
        yield
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < TRACED, f"{most:,} bytes of memory"


@contextmanager
def lying(data: bytes) -> Iterator[Path]:
    """A file with these bytes in a folder of its own; AssertionError if others are left there."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_IN_MEMORY) as name:
        path = Path(name) / "file"
        path.write_bytes(data)
        yield path
        left = sorted(each.name for each in path.parent.iterdir() if each != path)
        assert not left, f"left on the disk: {left}"
        assert path.read_bytes() == data, "the file itself was changed"


@contextmanager
def _timed() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TooLong(f"more than {SECONDS} seconds of the processor")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _with_memory() -> Iterator[None]:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  a Path for each takes ten times as long
