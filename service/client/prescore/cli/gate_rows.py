"""Gates as table rows: one row for each metric of each gate."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prescore.models import Gate, GateScore

_UNKNOWN = GateScore.model_validate({})


class Row(NamedTuple):
    gate: str
    metric: str
    score: float | None
    low: float | None
    high: float | None
    baseline: float | None
    difference: float | None
    p: float | None
    minimum_detectable: float | None
    verdict: str
    no_baseline: bool  # whether there was none yet that it could be held against
    baseline_failed: bool  # whether the baseline failed its own gates


def rows(gates: Iterable[Gate]) -> Iterator[Row]:
    for gate in gates:
        for metric, score in (gate.scores or {"": _UNKNOWN}).items():
            low, high = score.interval or (None, None)
            yield Row(
                gate=gate.gate,
                metric=metric,
                score=score.value,
                low=low,
                high=high,
                baseline=score.baseline,
                difference=score.difference,
                p=score.p,
                minimum_detectable=score.minimum_detectable,
                verdict=gate.verdict or "open",
                no_baseline=gate.no_baseline,
                baseline_failed=gate.baseline_failed,
            )
