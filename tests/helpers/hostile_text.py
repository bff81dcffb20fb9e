"""Text that would have power over a terminal, a CI's log, a spreadsheet or a page."""

import csv
import io
import re

REAL = "👨‍👩‍👧 日本\u3000語 é\u0301 עברית"  # what people write: it stays as it is
HOSTILE = {
    "commands": "::add-mask::x\n::stop-commands::t\r\n  ::error::y\r::warning::z",
    "marks": "x ##[add-mask]y ##vso[task.setvariable variable=a]b ##teamcity[buildStop]",
    "terminal": "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\b\u2028::error::a\u2029\u202egnp\u2066b\x85",
    "formula": "=cmd|' /C calc'!A0",
    "page": "<script>alert(1)</script> [a](javascript:b) | `c` <!--",
    "long": "x" * 10_000,
}
_POWERFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_MARK = re.compile(r"##(\[|vso\[|teamcity\[)")


def check_plain(text, own=()):
    """Lines begin with no command but our own, and have no character with power."""
    assert not _POWERFUL.search(text), repr(_POWERFUL.search(text))
    assert not _MARK.search(text), text
    for line in text.split("\n"):
        assert not line.lstrip().startswith("::") or line.startswith(own or "\0"), line


def check_table(text, delimiter=","):
    """No cell is a formula. Texts keep their line ends, and no line is a command."""
    check_plain(re.sub("[\r\u2028\u2029]", "\n", text).replace("\t", " "))
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    for cell in (cell for row in rows for cell in row):
        assert cell.lstrip()[:1] not in ("=", "@", "+", "-") or _is_number(cell), cell
    return rows


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True
