"""A verdict as a picture: a panel for each correlation and each category, whose axis fits it."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from prescore.plain_text import quoted
from workers.analysis.judging.tables import TITLES, figures
from workers.analysis.judging.verdict import Verdict

_LEFT, _WIDTH, _ROW = 260, 500, 22  # in pixels
_TICKS = 5  # at most as many steps on an axis
_KINDS = {"rated": "", "pairs": "", "pairs-half": ", a tie is half"}

Row = Mapping[str, Any]


# matplotlib would save 30 of 60 lines, but takes 30 times as long (0.3 s, and 1.4 s to import) and
# brings 97 MB; plotext draws only in terminals.
def svg(verdict: Verdict) -> str:
    """A dot for each number of the table, and its interval."""
    panels: dict[str, list[Row]] = {}
    for row in figures(verdict):
        if row["value"] is not None:
            title = TITLES.get(row["what"], row["what"]) + _KINDS[row["kind"]]
            panels.setdefault(title, []).append(row)
    drawn, height = "", 0
    for title, rows in panels.items():
        drawn += f'<g transform="translate(0 {height})">{_panel(title, rows)}</g>'
        height += _ROW * (len(rows) + 3)
    width = _LEFT + _WIDTH + 80
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12"><rect width="{width}" height="{height}" '
        f'fill="white"/>{drawn}</svg>\n'
    )


def ticks(low: float, high: float) -> list[float]:
    """Round numbers in equal steps; the first is at most `low`, the last at least `high`."""
    least = max(high - low, 1e-3) / _TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= least * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [at * step for at in range(first, max(last, first + 1) + 1)]


def _panel(title: str, rows: Sequence[Row]) -> str:
    ends = [_ends(row) for row in rows]
    axis = ticks(min(low for low, _ in ends), max(high for _, high in ends))
    height = _ROW * (len(rows) + 2)

    def x(value: float) -> float:
        return _LEFT + _WIDTH * (value - axis[0]) / (axis[-1] - axis[0])

    grid = "".join(
        f'<path d="M{x(tick):.1f} {_ROW}V{height - _ROW}" stroke="#ddd"/>'
        f'<text x="{x(tick):.1f}" y="{height - 6}" text-anchor="middle">{tick:.6g}</text>'
        for tick in axis
    )
    head = f'<text x="{_LEFT}" y="{_ROW - 6}" font-weight="bold">{escape(quoted(title))}</text>'
    marks = ""
    for place, row in enumerate(rows, 1):
        y = _ROW * place + _ROW / 2
        low, high = map(x, _ends(row))
        marks += (
            f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">'
            f"{escape(quoted(str(row['metric'])))}</text>"
            f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="#2563eb" stroke-width="2"/>'
            f'<circle cx="{x(row["value"]):.1f}" cy="{y}" r="4" fill="#2563eb"/>'
            f'<text x="{_LEFT + _WIDTH + 12}" y="{y + 4}">{row["value"]:.3f}</text>'
        )
    return head + grid + marks


def _ends(row: Row) -> tuple[float, float]:
    """The ends of the interval; if there is no interval, the value itself."""
    if row.get("low") is None:
        return row["value"], row["value"]
    return row["low"], row["high"]
