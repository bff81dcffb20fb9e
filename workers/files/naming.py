"""Errors in lines of a file, with the file's name."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.contract.errors import RequestRefused


@contextmanager
def lines_of(path: Path) -> Iterator[None]:
    """`line 2, image: …` becomes `own.jsonl, line 2, image: …`; other errors name their file."""
    try:
        yield
    except RequestRefused as error:
        if not error.detail.startswith("line "):
            raise
        raise type(error)(f"{path}, {error.detail}", pointer=error.pointer) from None
