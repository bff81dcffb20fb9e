"""A place to write a file, looked at before the task that makes the file."""

import os
from pathlib import Path

from prescore.errors import InvalidArgument


def check_file(path: Path) -> None:
    """Raise for a place where no file can be written."""
    try:
        refusal = _refusal(path)
    except OSError as error:  # such as a name that is too long
        refusal = f"{path} cannot be written: {error.strerror}"
    if refusal:
        raise InvalidArgument(refusal)


def _refusal(path: Path) -> str:
    if path.is_dir():
        return f"expected a file to write, found the folder {path}: add a name to it"
    if not path.parent.is_dir():
        return f"expected a folder for {path.name}, found none at {path.parent}"
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return f"expected a file that may be written, found {path}"
    return ""
