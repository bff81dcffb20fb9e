"""What reading one input may cost: time of the processor, memory, open files, the disk."""

import os
import resource
import signal
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SECONDS = 1.0  # of the processor; no input of the corpus has more than some hundred thousand bytes
MEMORY = 256 << 20  # address space beyond what the process has: 64 MB, and room for fragments
PATIENCE = 10.0  # seconds for other threads to close what they have open
TRACED = 64 << 20  # bytes of Python's own objects, counted for kept inputs alone, since it is slow
_IN_MEMORY = next((at for at in ("/dev/shm",) if Path(at).is_dir()), None)  # noqa: S108  quick


class TooLong(Exception):
    """An input took more of the processor's time than one may."""


@contextmanager
def bounded() -> Iterator[None]:
    """TooLong or MemoryError inside, where an input takes more; AssertionError for open files."""
    before = _open_files()
    with _timed(), _with_memory():
        yield
    left = _left_open(before)
    assert not left, f"files were left open: {', '.join(left)}"


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
def growing_little(most: int = 200_000_000) -> Iterator[None]:
    """AssertionError where this process came to have so many bytes more than ever before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < most, f"{grown:,} bytes more"


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


def _left_open(before: Counter[str]) -> list[str]:
    """The files that are open now and were not before. Other threads of this process open files for
    a moment, so it is looked again for a while.
    """
    until = time.monotonic() + PATIENCE
    while (left := _open_files() - before) and time.monotonic() < until:
        time.sleep(0.05)
    return sorted(left)


def _open_files() -> Counter[str]:
    """The paths of open files; sockets and pipes belong to what else the process does."""
    found: Counter[str] = Counter()
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208  a Path takes ten times as long
        with suppress(OSError):  # closed meanwhile
            found[os.readlink(f"/proc/self/fd/{number}")] += 1  # noqa: PTH115  as above
    return Counter({path: many for path, many in found.items() if path.startswith("/")})
