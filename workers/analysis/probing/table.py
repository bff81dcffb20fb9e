"""What a probe answers: rows of scores, and what is lost beside the probe's first row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

Values = Mapping[str, float]  # by metric


@dataclass(frozen=True)
class Scored:
    values: Values
    signatures: Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """`share` is that of tokens replaced, `drop` the first row's scores less these, `sd` the
    population standard deviation where scores are means. Where there is a `reason`, there are no
    scores. `text` is the sentence, where the row is about one.
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


def mean(scored: Sequence[Scored]) -> dict[str, float]:
    return {
        name: float(np.mean([each.values[name] for each in scored])) for name in scored[0].values
    }


def deviation(scored: Sequence[Scored]) -> dict[str, float]:
    """Population standard deviations; infinite where some scores are, and not all alike."""
    found = {}
    for name in scored[0].values:
        values = np.array([each.values[name] for each in scored])
        if np.isfinite(values).all():
            found[name] = float(np.std(values))
        else:
            found[name] = 0.0 if (values == values[0]).all() else float("inf")
    return found


def drop(before: Values, after: Values) -> dict[str, float]:
    """Nothing where both are the same infinity."""
    return {
        name: 0.0 if value == after[name] else value - after[name] for name, value in before.items()
    }
