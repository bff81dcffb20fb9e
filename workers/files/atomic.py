"""Results on disk: whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path


def write(path: Path, save: Callable[[Path], object]) -> None:
    """`save` writes beside `path`; what it wrote takes the name when it is all there."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        save(partial)
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
