"""Captions in a table: CSV, with commas, semicolons or tabs, under a heading.

Which of the three separates its cells, the heading says: with the right one, it has the columns.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prescore.errors import InvalidArgument
from prescore.names import find_near_names
from prescore.plain_text import format_count

SEPARATORS = ",;\t"
IMAGES = ("image", "image_id")
CAPTION = "caption"
WANTED = "one column `caption` and one column `image` or `image_id`"
HEADING_CHARACTERS = 4096
MOST_SHOWN = 10  # columns of a heading
_MEANT = {  # what other programs call them
    **dict.fromkeys(("file", "file_name", "filename", "image_name", "image_path", "img"), "image"),
    **dict.fromkeys(("captions", "description", "prediction", "sentence", "text"), CAPTION),
}
_IMAGE = re.compile(r"\S+\.(bmp|gif|jpe?g|png|tiff?|webp)", re.IGNORECASE)


def is_table(text: str) -> bool:
    """Check that a text begins with the heading of a table of captions."""
    return any(_is_right(_split_heading(text, separator)) for separator in SEPARATORS)


def read_table(text: str) -> Iterator[Mapping[str, Any]]:
    separator = _choose_separator(text)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        heading = _normalize_names(next(rows, []))
        image, caption = _find_columns(heading)
        for row in rows:
            if not row:
                continue
            if len(row) != len(heading):
                raise InvalidArgument(_describe_uneven(rows.line_num, heading, row, separator))
            yield {"image": row[image], "caption": row[caption]}
    except csv.Error as error:
        raise InvalidArgument(f"line {rows.line_num}: not CSV: {error}") from None


def describe_unused(text: str) -> str:
    """The columns of a table that `read` leaves out, to be shown."""
    left = [
        name
        for name in _split_heading(text, _choose_separator(text))
        if name not in (*IMAGES, CAPTION)
    ]
    return _show_names(left) if left else ""


def _choose_separator(text: str) -> str:
    """Choose the separator with which the heading is right, or else has the most columns."""
    return max(
        SEPARATORS, key=lambda one: (_is_right(found := _split_heading(text, one)), len(found))
    )


def _split_heading(text: str, separator: str) -> list[str]:
    """The names in the heading."""
    first = text[:HEADING_CHARACTERS].lstrip("\r\n").partition("\n")[0]
    return _normalize_names(next(csv.reader([first], delimiter=separator), []))


def _normalize_names(row: Sequence[str]) -> list[str]:
    return [name.strip().lower() for name in row]


def _is_right(heading: Sequence[str]) -> bool:
    return heading.count(CAPTION) == 1 and sum(map(heading.count, IMAGES)) == 1


def _find_columns(heading: list[str]) -> tuple[int, int]:
    """The places of the image's name and of the caption."""
    if not _is_right(heading):
        raise InvalidArgument(
            f"line 1: expected {WANTED}, found {_show_names(heading)}{_suggest_heading(heading)}"
        )
    return heading.index(next(one for one in IMAGES if one in heading)), heading.index(CAPTION)


def _show_names(heading: Sequence[str]) -> str:
    if not any(heading):
        return "none"
    shown = ", ".join(f"{name!r:.60}" for name in heading[:MOST_SHOWN])
    return shown + (f" and {len(heading) - MOST_SHOWN} more" * (len(heading) > MOST_SHOWN))


def _suggest_heading(heading: Sequence[str]) -> str:
    """Suggest a heading where there is none, other names where some are nearly right."""
    if any(map(_IMAGE.fullmatch, heading)):
        return ": write a line with the names of the columns above it, such as image,caption"
    meanings = {name: _suggest_column(name) for name in heading if name not in (*IMAGES, CAPTION)}
    advice = [f"{name!r:.60} {meant}" for name, meant in meanings.items() if meant]
    return f": name {' and '.join(advice)}" if advice else ""


def _suggest_column(name: str) -> str:
    return _MEANT.get(name) or next(iter(find_near_names(name, (*IMAGES, CAPTION))), "")


def _describe_uneven(line: int, heading: Sequence[str], row: Sequence[str], separator: str) -> str:
    problem = f"line {line}: expected {format_count(len(heading), 'cell')}, found {len(row)}"
    more = len(row) > len(heading) and separator != "\t"
    return (
        f"{problem}: a text with {separator!r} in it stands in double quotes" if more else problem
    )
