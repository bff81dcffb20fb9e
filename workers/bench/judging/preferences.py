"""Accuracy of metrics on pairs: how often they prefer the caption that people prefer.

A tie counts as wrong (`accuracy`) and, beside it, as half (`half`), which is what guessing would
earn. Every figure has a 95 % interval, from its groups of pairs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.bench.judgements import ALL, AVERAGE, WORST, JudgedPair
from workers.bench.judging.intervals import ObservationGroups, compute_share_interval
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints

AccuracyRow = Mapping[str, Any]
KINDS: Mapping[str, str] = {"accuracy": "interval", "half": "half_interval"}  # with its interval

_SAME = 1e-10  # of the largest score of a pair in the file: smaller differences are rounding


@dataclass(frozen=True, eq=False)
class PreferenceFigure:
    """The mean over a category's pairs, or of categories' means; `numbers`: pairs' groups."""

    categories: Sequence[NDArray[np.bool_]]
    numbers: Ints

    @cached_property
    def chosen(self) -> NDArray[np.bool_]:
        chosen: NDArray[np.bool_] = np.any(self.categories, axis=0)
        return chosen

    @cached_property
    def groups(self) -> ObservationGroups:
        return ObservationGroups.of(self.numbers[self.chosen])

    def value(self, values: Floats) -> float:
        return float(np.mean([values[each].mean() for each in self.categories]))

    def shifts(self, values: Floats) -> Floats:
        """Shift of the figure by each group."""
        moved = np.zeros(len(values))
        for each in self.categories:
            own = values[each]
            moved[each] += (own - own.mean()) / (len(own) * len(self.categories))
        return self.groups.sums(moved[self.chosen])


def define_figures(pairs: Sequence[JudgedPair], numbers: Ints) -> dict[str, PreferenceFigure]:
    """Define figures: each category, `all` pairs, the `average` of categories if there are any."""
    names = np.array([pair.category or "" for pair in pairs], object)
    found = {
        name: PreferenceFigure([names == name], numbers)
        for name in dict.fromkeys(pair.category for pair in pairs)
        if name is not None
    }
    average = {AVERAGE: PreferenceFigure([each.categories[0] for each in found.values()], numbers)}
    everything = {ALL: PreferenceFigure([np.ones(len(pairs), bool)], numbers)}
    return found | everything | (average if found else {})


def measure_agreement(pairs: Sequence[JudgedPair], scores: Floats) -> dict[str, Floats]:
    """Measure pairs' `accuracy`, `half`, `ties` by scores of a and b (pairs, 2)."""
    a, b = scores.T
    scale = np.abs(scores[np.isfinite(scores)]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        ties = (a == b) | (np.abs(a - b) <= _SAME * scale)
    right = ~ties & np.where([pair.preferred == "a" for pair in pairs], a > b, b > a)
    return {"accuracy": right * 1.0, "half": right + ties / 2, "ties": ties * 1.0}


def make_accuracy_rows(
    told: Mapping[str, PreferenceFigure], agreed: Mapping[str, Floats]
) -> dict[str, AccuracyRow]:
    """A row for each figure, and for the `worst` category."""
    rows = {name: _row(figure, agreed) for name, figure in told.items()}
    if AVERAGE not in rows:
        rows[AVERAGE] = _nothing()
    return rows | {WORST: _worst({name: rows[name] for name in rows if name not in (ALL, AVERAGE)})}


def _row(figure: PreferenceFigure, agreed: Mapping[str, Floats]) -> AccuracyRow:
    found: dict[str, Any] = {"n": int(figure.chosen.sum())}
    found |= {name: figure.value(values) for name, values in agreed.items()}
    for name, field in KINDS.items():
        found[field] = compute_share_interval(
            found[name], figure.shifts(agreed[name]), figure.groups
        )
    return found | {"clusters": figure.groups.many}


def _nothing() -> dict[str, Any]:
    return {"n": 0, **dict.fromkeys((*KINDS, "ties", *KINDS.values())), "clusters": 0}


def _worst(rows: Mapping[str, AccuracyRow]) -> AccuracyRow:
    """The lowest accuracy, and the lowest with ties as half, which may be another category's."""
    if not rows:
        return _nothing() | {"category": None, "half_category": None}
    name, row = min(rows.items(), key=lambda item: item[1]["accuracy"])
    other, by_half = min(rows.items(), key=lambda item: item[1]["half"])
    half = {each: by_half[each] for each in ("half", "half_interval")}
    return {**row, **half, "category": name, "half_category": other}
