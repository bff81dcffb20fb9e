r"""Plain text: text that others wrote, made harmless for a terminal, a CI's log, a spreadsheet.

A character that has power is shown as Python writes it, such as `\x1b`; all others stay as they
are. The client, the service and the workers all write by it.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from typing import IO

LONGEST = 20_000  # characters of a line; the longest caption has 10,000

# Controls (ESC, C1 and a lone CR too), separators of lines and paragraphs, what turns the direction
# of the text after it, and halves of characters. Not what joins emoji or letters, marks of
# right-to-left scripts, wide blanks: names and captions need them.
POWERFUL = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb"
NAME = f"^[^{POWERFUL}]*$"  # also a pattern of JSON Schema
_POWERFUL = re.compile(rf"[{POWERFUL}\ud800-\udfff]")
_COMMAND = re.compile(r"\s*::")  # of GitHub's runner, at the beginning of a line
_MARKED = re.compile(r"##(?=\[|vso\[|teamcity\[)")  # of GitHub, Azure, TeamCity: anywhere in a line
# In a table a text keeps its line ends and tabs, since programs read it again.
_POWERFUL_IN_CELLS = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff]"
)
_LATER_COMMAND = re.compile(r"(?<=[\n\r\u2028\u2029])(?=[^\S\n\r\u2028\u2029]*::)")
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf|nan")


def is_plain(text: str) -> bool:
    """Check that a name has no character with power."""
    return _POWERFUL.search(text) is None


def quoted(text: str) -> str:
    """A part of a line."""
    return _escaped(text) if len(text) <= LONGEST else f"{_escaped(text[:LONGEST])}…"


def line(text: str) -> str:
    """A whole line."""
    shown = quoted(text)
    return f"\\{shown}" if _COMMAND.match(shown) else shown


def json_line(text: str) -> str:
    """JSON as a line: the same content, without marks of CI systems in its texts."""
    return text.replace("##", r"#\u0023")


def cell(value: object) -> object:
    """A cell of a table: a text that a spreadsheet would take for a formula begins with `'`."""
    if not isinstance(value, str):
        return value
    shown = _LATER_COMMAND.sub(r"\\", _escaped(value, _POWERFUL_IN_CELLS))
    has_power = _FORMULA.match(shown) or _COMMAND.match(shown)
    return f"'{shown}" if has_power and not _NUMBER.fullmatch(shown) else shown


def write_table(
    stream: IO[str],
    rows: Iterable[Sequence[object]],
    delimiter: str = ",",
    line_end: str = "\r\n",
) -> None:
    """Write rows as CSV."""
    table = csv.writer(stream, delimiter=delimiter, lineterminator=line_end)
    table.writerows([cell(value) for value in row] for row in rows)


def _escaped(text: str, powerful: re.Pattern[str] = _POWERFUL) -> str:
    shown = powerful.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return _MARKED.sub(r"#\\#", shown)


def format_count(count: int, noun: str) -> str:
    """Format a count in a sentence, such as `1 image` and `2 images`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
