"""Files that are written completely or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")


def write(path: Path, save: Callable[[Path], Found]) -> Found:
    """Call `save` with a temporary path, and rename that file to `path` when it is complete.

    Returns what `save` returns.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        found = save(partial)
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        partial.replace(path)
        return found
    finally:
        partial.unlink(missing_ok=True)
