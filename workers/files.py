"""Files written completely or not at all, and errors in their lines with the name of the file."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from service.contract.errors import RequestRefused

Found = TypeVar("Found")


def write_atomically(path: Path, save: Callable[[Path], Found]) -> Found:
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


@contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """`line 2, image: …` becomes `own.jsonl, line 2, image: …`; other errors name their file."""
    try:
        yield
    except RequestRefused as error:
        if not error.detail.startswith("line "):
            raise
        raise type(error)(f"{path}, {error.detail}", pointer=error.pointer) from None
