"""Disks that are full."""

import contextlib
import resource
from collections.abc import Iterator


@contextlib.contextmanager
def no_room(size: int) -> Iterator[None]:
    """No file of this process may be larger; like a full disk, that is found when it is written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
