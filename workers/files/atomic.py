"""Files that are written completely or not at all."""

import os
from collections.abc import Callable
from pathlib import Path


def write(path: Path, save: Callable[[Path], object]) -> None:
    """Call `save` with a temporary path, and rename that file to `path` when it is complete."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        save(partial)
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
