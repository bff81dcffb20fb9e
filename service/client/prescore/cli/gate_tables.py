"""Gates as table rows, one for each metric of each gate, and their verdicts as text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from prescore.cli.text import format_interval, format_number
from prescore.models import Gate, GateScore
from prescore.plain_text import quoted

HEADING = ("gate", "metric", "score", "interval", "baseline", "difference", "verdict")
_UNKNOWN = GateScore.model_validate({})


class GateRow(NamedTuple):
    gate: str
    metric: str
    score: float | None
    low: float | None
    high: float | None
    baseline: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
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
                score=score.value,
                low=low,
                high=high,
                baseline=score.baseline,
                difference=score.difference,
                difference_low=difference_low,
                difference_high=difference_high,
                p=score.p,
                minimum_detectable=score.minimum_detectable,
                verdict=gate.verdict or "open",
                no_baseline=gate.no_baseline,
                baseline_failed=gate.baseline_failed,
            )


def build_table(gates: Sequence[Gate]) -> list[tuple[str, ...]]:
    """Build a heading, then a row for each metric of each gate; empty where there are no gates."""
    table = [_format_row(row, gate) for gate in gates for row in list_rows([gate])]
    return [HEADING, *table] if table else []


def _format_row(row: GateRow, gate: Gate) -> tuple[str, ...]:
    return (
        row.gate,
        row.metric,
        "" if row.score is None else format_number(row.score),
        "" if row.low is None else format_interval((row.low, row.high)),
        "" if row.baseline is None else format_number(row.baseline),
        _format_difference(row),
        format_verdict(row.verdict, [gate]),
    )


def _format_difference(row: GateRow) -> str:
    """Format a difference, with its interval where a gate is on it."""
    if row.difference is None:
        return ""
    if row.difference_low is None or row.difference_high is None:
        return f"{row.difference:+.4g}"
    return f"{row.difference:+.4g} ({row.difference_low:+.3g} to {row.difference_high:+.3g})"


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
