"""Gates as rows: one for each metric that a gate held against something."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prescore.models import Gate, GateScore


class Row(NamedTuple):
    gate: str
    metric: str
    score: float | None
    low: float | None
    high: float | None
    baseline: float | None
    difference: float | None
    verdict: str


def rows(gates: Iterable[Gate]) -> Iterator[Row]:
    for gate in gates:
        for metric, score in (gate.scores or {"": GateScore()}).items():
            low, high = score.interval or (None, None)
            verdict = gate.verdict or "open"
            yield Row(
                gate.gate, metric, score.value, low, high, score.baseline, score.difference, verdict
            )
