"""People's judgements of captions, as `prescore judge` reads them: an object on each line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prescore.errors import InvalidArgument
from prescore.files.captions import json_of, text_of


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a file; what is in them is for the service to judge."""
    found = []
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json_of(line, f"line {number}")
        except InvalidArgument as error:
            raise InvalidArgument(f"{path}, {error}") from None
        if not isinstance(value, Mapping):
            raise InvalidArgument(
                f"{path}, line {number}: expected an object, found {str(value)[:60]!r}"
            )
        found.append(dict(value))
    if not found:
        raise InvalidArgument(f"{path}: expected a line for each judgement, found none")
    return found
