"""Numbers of gates as rows, one for each metric of each gate, which all reports show; and verdicts
as text.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from prescore.cli.text import align_rows, format_difference, format_number, shorten
from prescore.models import Gate, GateScore
from prescore.plain_text import quoted

HEADING = ("gate", "metric", "value", "baseline", "difference", "interval", "margin", "verdict")
_ALWAYS = ("gate", "metric", "value", "verdict")  # shown although all their cells are empty
_LEFT_OUT = ("baseline", "margin", "interval")  # in this order, from a table that is too wide
_WIDTH = 98  # characters of a row; with the indent of a section, 100
_SHORTEST = 24  # characters of a gate that is cut
_UNKNOWN = GateScore.model_validate({})


class GateRow(NamedTuple):
    gate: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    baseline: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    margin: float | None
    p: float | None
    minimum_detectable: float | None
    verdict: str
    no_baseline: bool  # whether there was none yet that it could be held against
    baseline_failed: bool  # whether the baseline failed its own gates


def list_rows(gates: Iterable[Gate]) -> Iterator[GateRow]:
    for gate in gates:
        for metric, score in (gate.scores or {"": _UNKNOWN}).items():
            low, high = score.interval or (None, None)
            difference_low, difference_high = score.difference_interval or (None, None)
            yield GateRow(
                gate=gate.gate,
                metric=metric,
                value=score.value,
                low=low,
                high=high,
                baseline=score.baseline,
                difference=score.difference,
                difference_low=difference_low,
                difference_high=difference_high,
                margin=score.margin,
                p=score.p,
                minimum_detectable=score.minimum_detectable,
                verdict=gate.verdict or "open",
                no_baseline=gate.no_baseline,
                baseline_failed=gate.baseline_failed,
            )


def build_table(gates: Sequence[Gate]) -> list[tuple[str, ...]]:
    """Build a heading, then a row for each metric of each gate, without columns that are empty; no
    rows where there are no gates.
    """
    table = [_format_row(row, gate) for gate in gates for row in list_rows([gate])]
    columns = zip(HEADING, *table, strict=True)
    empty = {name for name, *cells in columns if name not in _ALWAYS and not any(cells)}
    return _drop_columns([HEADING, *table], empty) if table else []


def fit_table(table: Sequence[tuple[str, ...]], width: int = _WIDTH) -> list[tuple[str, ...]]:
    """Fit a table to a terminal: leave out columns whose numbers the others tell too, until there
    is room for the gates, and cut those that are longer.
    """
    if not table:
        return []
    shortest = min(_SHORTEST, max(len(row[0]) for row in table))
    fitted = list(table)
    for name in ("", *_LEFT_OUT):
        fitted = _drop_columns(fitted, {name})
        others = align_rows([("", *row[1:]) for row in fitted])
        room = width - max(map(len, others))
        if room >= shortest:
            break
    return [(shorten(gate, max(room, shortest)), *cells) for gate, *cells in fitted]


def _drop_columns(table: Sequence[tuple[str, ...]], names: Container[str]) -> list[tuple[str, ...]]:
    return [
        tuple(cell for name, cell in zip(table[0], row, strict=True) if name not in names)
        for row in table
    ]


def _format_row(row: GateRow, gate: Gate) -> tuple[str, ...]:
    return (
        row.gate,
        row.metric,
        "" if row.value is None else format_number(row.value),
        "" if row.baseline is None else format_number(row.baseline),
        "" if row.difference is None else format_difference(row.difference),
        _format_ends(row.difference_low, row.difference_high),
        "" if row.margin is None else f"{row.margin:.4g}",
        format_verdict(row.verdict, [gate]),
    )


def _format_ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:+.3g} to {high:+.3g}"


def format_verdict(verdict: str, gates: Iterable[Gate]) -> str:
    """Format a verdict on gates; one that passed for want of a baseline says so."""
    unheld = verdict == "passed" and any(gate.passed_unheld for gate in gates)
    return f"{verdict} (no baseline)" if unheld else verdict


def list_details(gates: Iterable[Gate]) -> list[str]:
    """Give a line for each gate whose verdict has a reason."""
    lines = (
        f"{format_verdict(gate.verdict or 'open', [gate])}: {gate.gate}: {gate.detail}"
        for gate in gates
        if gate.detail
    )
    return [quoted(line.replace("\n", " ")) for line in lines]


def list_failed_baselines(gates: Iterable[Gate]) -> list[str]:
    """Give a line for each baseline that failed its own gates, whatever the verdicts are."""
    against = [
        score.evaluation
        for gate in gates
        if gate.baseline_failed
        for score in gate.scores.values()
        if score.evaluation
    ]
    return [
        quoted(f"warning: the baseline {evaluation} failed its own gates")
        for evaluation in dict.fromkeys(against)
    ]
