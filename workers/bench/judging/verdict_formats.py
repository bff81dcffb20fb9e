"""A verdict as text, CSV and SVG."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from io import StringIO
from typing import Any

from prescore.plain_text import quoted, write_table
from workers.bench.judgements import ALL, AVERAGE, WORST
from workers.bench.judging import systems
from workers.bench.judging.correlations import NAMES, P_VALUES
from workers.bench.judging.intervals import FEWEST
from workers.bench.judging.preferences import KINDS
from workers.bench.judging.verdict import Verdict

TITLES = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall_b": "Kendall b",
    "kendall_c": "Kendall c",
}
_COLUMNS = ("kind", "metric", "what", "n", "value", "low", "high", "p", "ties", "against", "line")
_PAIRS = {"accuracy": "pairs", "half": "pairs-half"}  # kinds of rows
TIES = {"accuracy": "a tie is wrong", "half": "a tie is half"}
_SMALL_P = 0.001

Cells = list[list[str]]  # the lines of a table, its heads first


def format_verdict(verdict: Verdict) -> str:
    rated, pairs = verdict["rated"], verdict["pairs"]
    blocks = [_correlations(verdict)] if rated else []
    blocks += [_accuracies(pairs, kind) for kind in KINDS] if pairs else []
    blocks += [_differences(verdict)] if len(rated or pairs) > 1 else []
    blocks += [_systems(verdict["systems"])] if verdict["systems"] else []
    said = list(dict.fromkeys(_reasons(verdict)))
    return "\n\n".join([*blocks, "\n".join(said)] if said else blocks)


def _reasons(verdict: Verdict) -> Iterator[str]:
    for name, row in verdict["rated"].items():
        if row["reason"]:
            yield quoted(f"{name}: {row['reason']}")
    for row in verdict["pairs"].values():
        if any(each["n"] and each["interval"] is None for each in row.values()):
            yield f"no intervals and no p for pairs of fewer than {FEWEST} images"
    for name, row in (verdict["systems"] or {"metrics": {}})["metrics"].items():
        if row["reason"]:
            yield quoted(f"{name}, over systems: {row['reason']}")


def make_figure_cells(metrics: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> Cells:
    """A line for each metric, with its correlations of these names."""
    cells = [["", *(TITLES[name] for name in names)]]
    for metric, row in metrics.items():
        figures = ((row[name], row["intervals"][name], row.get(P_VALUES[name])) for name in names)
        cells.append([metric, *(format_figure(*figure) for figure in figures)])
    return cells


def list_comparisons(verdict: Verdict, kind: str) -> dict[str, Mapping[str, Any]]:
    """Comparisons of `rated` lines or `pairs` by title; of all pairs, and on average."""
    compared = verdict["comparisons"][kind]
    if kind == "rated":
        return {TITLES[name]: each for name, each in compared.items()}
    return {
        f"{name}, {TIES[tie]}": each
        for name in (ALL, AVERAGE)
        for tie, each in compared.get(name, {}).items()
    }


def make_difference_cells(
    comparisons: Mapping[str, Mapping[str, Any]], metrics: Iterable[str], mark: str
) -> Cells:
    """Differences of metrics from the one that has the mark."""
    compared = comparisons.values()
    rows = ([metric, *(_difference(each, metric, mark) for each in compared)] for metric in metrics)
    return [["", *comparisons], *rows]


def _correlations(verdict: Verdict) -> str:
    first = next(iter(verdict["rated"].values()))
    return (
        f"{first['n']:,} rated lines, {first['observations']:,} ratings ({verdict['raters']}), "
        f"{verdict['reference_sets']:,} distinct reference sets, {first['clusters']:,} images; "
        "p < .001 unless it is given beside the interval\n"
        + _aligned(make_figure_cells(verdict["rated"], NAMES))
    )


def _accuracies(metrics: Mapping[str, Mapping[str, Any]], kind: str) -> str:
    first = next(iter(metrics.values()))
    heads = [
        name if name in (AVERAGE, WORST) else f"{name} ({first[name]['n']:,})" for name in first
    ]
    cells = [["", *heads]]
    cells += [
        [metric, *(_accuracy(row, kind) for row in rows.values())]
        for metric, rows in metrics.items()
    ]
    ties = ", and in brackets the share of ties" if kind == "accuracy" else ""
    return f"Pairs: accuracy where {TIES[kind]}{ties}\n{_aligned(cells)}"


def _differences(verdict: Verdict) -> str:
    """Table of differences, averaged over categories, or of all pairs; spreadsheets have
    categories.
    """
    comparisons = list_comparisons(verdict, "rated") | list_comparisons(verdict, "pairs")
    metrics = dict.fromkeys((*verdict["rated"], *verdict["pairs"]))
    return (
        "Differences from the metric marked *, on the same lines; p < .001 unless it is given "
        "beside the interval\n" + _aligned(make_difference_cells(comparisons, metrics, "*"))
    )


def _difference(compared: Mapping[str, Any], metric: str, mark: str) -> str:
    if metric == compared["against"]:
        return mark
    row = compared["metrics"].get(metric)
    return (
        "none" if row is None else format_figure(row["difference"], row["interval"], row["p"], "+")
    )


def _systems(found: Mapping[str, Any]) -> str:
    return (
        f"Means of {found['n']:,} systems over {found['lines']:,} lines; intervals by resampling "
        f"{found['clusters']:,} images\n"
        + _aligned(make_figure_cells(found["metrics"], systems.NAMES))
    )


def format_verdict_csv(verdict: Verdict) -> str:
    """CSV: a row for each metric and correlation, metric and category, difference, score."""
    stream = StringIO()
    table = list(_list_verdict_rows(verdict))
    rows = (["" if row.get(name) is None else row[name] for name in _COLUMNS] for row in table)
    write_table(stream, [_COLUMNS, *rows], line_end="\n")
    return stream.getvalue()


def _list_verdict_rows(verdict: Verdict) -> Iterator[dict[str, Any]]:
    yield from _list_figures(verdict)
    for what, compared in verdict["comparisons"]["rated"].items():
        yield from _differing("rated-difference", what, compared)
    for what, kinds in verdict["comparisons"]["pairs"].items():
        for kind, compared in kinds.items():
            yield from _differing(f"{_PAIRS[kind]}-difference", what, compared)
    found = verdict["systems"]
    for metric, row in found["metrics"].items() if found else ():
        for name in systems.NAMES:
            known = {"n": found["n"], "value": row[name], **_ends(row["intervals"][name])}
            yield {"kind": "systems", "metric": metric, "what": name, **known}
    for kind, sides in (("rated", ("candidate",)), ("pairs", ("a", "b"))):
        lines = verdict["lines"][kind]
        for metric, scores in lines["scores"].items():
            for line, values in zip(lines["line"], scores, strict=True):
                each = values if isinstance(values, list) else [values]
                for side, value in zip(sides, each, strict=True):
                    score = {"what": side, "value": value, "line": line}
                    yield {"kind": "score", "metric": metric, **score}


def _list_figures(verdict: Verdict) -> Iterator[dict[str, Any]]:
    """List the figures of each metric alone."""
    for metric, row in verdict["rated"].items():
        for name in NAMES:
            yield {
                "kind": "rated",
                "metric": metric,
                "what": name,
                "n": row["n"],
                "value": row[name],
                **_ends(row["intervals"][name]),
                "p": row[P_VALUES[name]],
            }
    for metric, categories in verdict["pairs"].items():
        for name, row in categories.items():
            for kind, field in KINDS.items():
                counts = {"n": row["n"], "value": row[kind], "ties": row["ties"]}
                known = {"metric": metric, "what": name, **counts, **_ends(row[field])}
                yield {"kind": _PAIRS[kind], **known}


def _differing(kind: str, what: str, compared: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for metric, row in compared["metrics"].items():
        sure = {**_ends(row["interval"]), "p": row["p"], "against": compared["against"]}
        yield {"kind": kind, "metric": metric, "what": what, "value": row["difference"], **sure}


def _ends(interval: Sequence[float] | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {"low": low, "high": high}


def _accuracy(row: Mapping[str, Any], kind: str) -> str:
    if row[kind] is None:
        return "none"
    which = row.get("category" if kind == "accuracy" else "half_category")
    ties = f" ({row['ties']:.3f})" if kind == "accuracy" else ""
    shown = f"{format_figure(row[kind], row[KINDS[kind]])}{ties}"
    return f"{shown} {which}" if which else shown


def format_figure(
    value: float | None, interval: Sequence[float] | None, p: float | None = None, sign: str = ""
) -> str:
    """Format a figure with its interval, and its p where that is not small."""
    if value is None:
        return "none"
    ends = f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else ""
    return f"{value:{sign}.3f}{ends}" + (f" p={p:.2g}" if p is not None and p >= _SMALL_P else "")


def _aligned(cells: Sequence[Sequence[str]]) -> str:
    cells = [[quoted(cell) for cell in line] for line in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


_LEFT, _WIDTH, _ROW = 260, 500, 22  # in pixels
_TICKS = 5  # at most as many steps on an axis
_KINDS = {"rated": "", "pairs": "", "pairs-half": ", a tie is half"}

FigureRow = Mapping[str, Any]


# matplotlib would save 30 of 60 lines, but takes 30 times as long (0.3 s, and 1.4 s to import) and
# brings 97 MB; plotext draws only in terminals.
def draw_verdict(verdict: Verdict) -> str:
    """A dot for each number of the table, and its interval."""
    panels: dict[str, list[FigureRow]] = {}
    for row in _list_figures(verdict):
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


def choose_ticks(low: float, high: float) -> list[float]:
    """Round numbers in equal steps; the first is at most `low`, the last at least `high`."""
    least = max(high - low, 1e-3) / _TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= least * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [at * step for at in range(first, max(last, first + 1) + 1)]


def _panel(title: str, rows: Sequence[FigureRow]) -> str:
    ends = [_interval_ends(row) for row in rows]
    axis = choose_ticks(min(low for low, _ in ends), max(high for _, high in ends))
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
        low, high = map(x, _interval_ends(row))
        marks += (
            f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">'
            f"{escape(quoted(str(row['metric'])))}</text>"
            f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="#2563eb" stroke-width="2"/>'
            f'<circle cx="{x(row["value"]):.1f}" cy="{y}" r="4" fill="#2563eb"/>'
            f'<text x="{_LEFT + _WIDTH + 12}" y="{y + 4}">{row["value"]:.3f}</text>'
        )
    return head + grid + marks


def _interval_ends(row: FigureRow) -> tuple[float, float]:
    """The ends of the interval; if there is no interval, the value itself."""
    if row.get("low") is None:
        return row["value"], row["value"]
    return row["low"], row["high"]
