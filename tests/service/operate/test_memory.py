"""What is freed goes back to the system."""

import subprocess
import sys

# Large buffers that are freed while small ones between them live on.
PROGRAM = """
import sys
import psutil
from service.operate import memory
if sys.argv[1] == "give back":
    memory.return_freed_memory()
held = lambda: psutil.Process().memory_info().rss >> 20
del bytearray(8 << 20)[:]  # from now on glibc pools buffers of this size, if nothing is set
before = held()
large, small = [], []
for _ in range(40):
    large.append(bytearray(5 << 20))
    small.append(bytearray(100_000))
assert held() > before + 190
del large[:]
print(held() - before)
"""


def _kept(how):
    """Megabytes that are still held of 200 that were freed."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True
    )
    return int(found.stdout)


def test_freed_buffers_are_not_kept_though_the_library_keeps_them_by_itself():
    """Not every C library does."""
    assert _kept("leave it") > 150
    assert _kept("give back") < 20
