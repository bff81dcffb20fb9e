"""New files and folders: written completely, or not at all, also after Ctrl-C."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from prescore.errors import InvalidArgument


@contextmanager
def open_new_file(path: Path) -> Iterator[IO[str]]:
    """Open a text file that replaces `path` at the end of the block."""
    partial = path.with_name(f"{path.name}.partial")
    with _translate_write_errors(path):
        try:
            with partial.open("w", encoding="utf-8", errors="replace", newline="") as stream:
                yield stream
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def open_new_folder(path: Path) -> Iterator[Path]:
    """Give an empty folder that becomes `path`, a new or empty folder, at the end of the block."""
    with _translate_write_errors(path):
        if path.exists() and any(path.iterdir()):
            raise InvalidArgument(f"expected a new or empty folder, found files in {path}")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".prescore-", dir=path.absolute().parent) as above:
            made = Path(above) / "made"
            made.mkdir(mode=0o755)
            yield made
            if path.exists():
                path.rmdir()
            made.rename(path)


def write_json(stream: IO[str], value: object) -> None:
    """Write a line of JSON in ASCII. A half of a character, which readers refuse, becomes `?`."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not text.isascii():  # U+2028 would end a line for some readers
        text = json.dumps(json.loads(text.encode("utf-8", "replace")))
    stream.write(f"{text}\n")


@contextmanager
def _translate_write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}") from None
