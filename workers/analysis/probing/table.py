"""The result of a probe: rows of scores, and how much each row loses from the probe's first row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

Values = Mapping[str, float]  # by metric


@dataclass(frozen=True)
class ProbeScores:
    values: Values
    signatures: Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """`share` is the share of tokens replaced; `drop` is the first row's scores minus these; `sd`
    is the population standard deviation if scores are means. If there is a `reason`, there are no
    scores. `text` is the sentence, if the row is about one.
    """

    probe: str
    name: str
    share: float | None = None
    scores: Values = field(default_factory=dict)
    drop: Values = field(default_factory=dict)
    sd: Values = field(default_factory=dict)
    signatures: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    note: str = ""
    reason: str | None = None


def mean(scored: Sequence[ProbeScores]) -> dict[str, float]:
    return {
        name: float(np.mean([each.values[name] for each in scored])) for name in scored[0].values
    }


def deviation(scored: Sequence[ProbeScores]) -> dict[str, float]:
    """Population standard deviations. One is infinite if some scores are infinite and not all
    scores are equal.
    """
    found = {}
    for name in scored[0].values:
        values = np.array([each.values[name] for each in scored])
        if np.isfinite(values).all():
            found[name] = float(np.std(values))
        else:
            found[name] = 0.0 if (values == values[0]).all() else float("inf")
    return found


def drop(before: Values, after: Values) -> dict[str, float]:
    """Scores before minus scores after; 0 if both are the same infinity."""
    return {
        name: 0.0 if value == after[name] else value - after[name] for name, value in before.items()
    }
