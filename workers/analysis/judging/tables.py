"""A verdict for people to read: as text, as rows for a spreadsheet, as a picture."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from io import StringIO
from typing import Any

from service.contract.plain_text import quoted, write_table
from workers.analysis.judging.correlations import NAMES, P_VALUES
from workers.analysis.judging.verdict import Verdict
from workers.files.judgements import AVERAGE, WORST

_COLUMNS = ("kind", "metric", "what", "n", "value", "low", "high", "p", "ties")
_TITLES = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall_b": "Kendall b",
    "kendall_c": "Kendall c",
}
_SMALL_P = 0.001
_LEFT, _WIDTH, _ROW = 260, 500, 22  # of the picture, in pixels


def text(verdict: Verdict) -> str:
    rated, pairs = verdict["rated"], verdict["pairs"]
    blocks = [_correlations(verdict)] if rated else []
    blocks += [_accuracies(pairs)] if pairs else []
    said = [quoted(f"{name}: {row['reason']}") for name, row in rated.items() if row["reason"]]
    return "\n\n".join([*blocks, "\n".join(said)] if said else blocks)


def _correlations(verdict: Verdict) -> str:
    rows = verdict["rated"]
    first = next(iter(rows.values()))
    cells = [["", *_TITLES.values()]]
    cells += [
        [metric, *(_correlation(row, name) for name in NAMES)] for metric, row in rows.items()
    ]
    return (
        f"{first['n']:,} rated lines, {first['observations']:,} ratings ({verdict['raters']}), "
        f"{verdict['reference_sets']:,} distinct reference sets; p < .001 unless it is given "
        "beside the interval\n" + _aligned(cells)
    )


def _accuracies(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    first = next(iter(metrics.values()))
    heads = [
        name if name in (AVERAGE, WORST) else f"{name} ({first[name]['n']:,})" for name in first
    ]
    cells = [["", *heads]]
    cells += [[metric, *map(_accuracy, rows.values())] for metric, rows in metrics.items()]
    return f"Pairs: accuracy, and in brackets the share of ties\n{_aligned(cells)}"


def csv_text(verdict: Verdict) -> str:
    """CSV with a row for each metric and correlation, or metric and category."""
    stream = StringIO()
    rows = ([row.get(name, "") for name in _COLUMNS] for row in _rows(verdict))
    write_table(stream, [_COLUMNS, *rows], line_end="\n")
    return stream.getvalue()


def _rows(verdict: Verdict) -> Iterator[dict[str, Any]]:
    for metric, row in verdict["rated"].items():
        for name in NAMES:
            low, high = row["intervals"][name] or (None, None)
            yield {
                "kind": "rated",
                "metric": metric,
                "what": name,
                "n": row["n"],
                "value": row[name],
                "low": low,
                "high": high,
                "p": row[P_VALUES[name]],
            }
    for metric, categories in verdict["pairs"].items():
        for name, row in categories.items():
            counts = {"n": row["n"], "value": row["accuracy"], "ties": row["ties"]}
            yield {"kind": "pairs", "metric": metric, "what": name, **counts}


# matplotlib would save 30 of 45 lines, but takes 30 times as long (0.3 s, and 1.4 s to import) and
# brings 97 MB; plotext draws only in terminals.
def svg(verdict: Verdict) -> str:
    """A picture with a dot for each number of the table, and its interval, on a scale from -1 or 0
    to 1.
    """
    shown = [row for row in _rows(verdict) if row["value"] is not None]
    scale = -1.0 if any(min(_ends(row)) < 0 for row in shown) else 0.0
    height = _ROW * (len(shown) + 2)
    marks = "".join(_mark(place, row, scale) for place, row in enumerate(shown, 1))
    axis = "".join(
        f'<path d="M{_x(tick, scale):.1f} {_ROW}V{height - _ROW}" stroke="#ddd"/>'
        f'<text x="{_x(tick, scale):.1f}" y="{height - 6}" text-anchor="middle">{tick:g}</text>'
        for tick in (-1.0, -0.5, 0.0, 0.5, 1.0)
        if tick >= scale
    )
    width = _LEFT + _WIDTH + 80
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12"><rect width="{width}" height="{height}" '
        f'fill="white"/>{axis}{marks}</svg>\n'
    )


def _mark(place: int, row: Mapping[str, Any], scale: float) -> str:
    y = _ROW * place + _ROW / 2
    at = _x(row["value"], scale)
    low, high = (_x(end, scale) for end in _ends(row))
    label = escape(quoted(f"{row['metric']}, {_TITLES.get(row['what'], row['what'])}"))
    return (
        f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">{label}</text>'
        f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="#2563eb" stroke-width="2"/>'
        f'<circle cx="{at:.1f}" cy="{y}" r="4" fill="#2563eb"/>'
        f'<text x="{_LEFT + _WIDTH + 12}" y="{y + 4}">{row["value"]:.3f}</text>'
    )


def _ends(row: Mapping[str, Any]) -> tuple[float, float]:
    """The ends of the interval; if there is no interval, the value itself."""
    if row.get("low") is None:
        return row["value"], row["value"]
    return row["low"], row["high"]


def _x(value: float, scale: float) -> float:
    return _LEFT + _WIDTH * (value - scale) / (1 - scale)


def _correlation(row: Mapping[str, Any], name: str) -> str:
    value, bounds, p = row[name], row["intervals"][name], row[P_VALUES[name]]
    if value is None:
        return "none"
    if bounds is None:
        return f"{value:.3f}"
    interval = f" [{bounds[0]:.3f}, {bounds[1]:.3f}]"
    return f"{value:.3f}{interval}" + (f" p={p:.2g}" if p >= _SMALL_P else "")


def _accuracy(row: Mapping[str, Any]) -> str:
    if row["accuracy"] is None:
        return "none"
    which = f" {row['category']}" if "category" in row else ""
    return f"{row['accuracy']:.3f} ({row['ties']:.3f}){which}"


def _aligned(cells: Sequence[Sequence[str]]) -> str:
    cells = [[quoted(cell) for cell in line] for line in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )
