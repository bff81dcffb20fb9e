"""Health of metrics on a dataset: the reliability of each, by its probes' rows."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from service.contract.metrics import catalogue
from workers.bench.probing.probes import CONSTANT_AS_PEOPLE_ROW, CONSTANT_ROW, PEOPLE_ROW
from workers.bench.probing.scoring import ProbeTableRow, Values
from workers.bench.probing.word_probes import name_threshold_row

_RARE = 30  # times in training


@dataclass(frozen=True)
class ProbedMetricHealth:
    """Health of a metric, by its probes. A number is None if its probe was not asked for or has
    no answer; only metrics that are better the higher they are have shares.

    `human`: people's score against each other (RvR). `constant`: the score of one sentence for all
    images, against all their references. Both are also given as shares of the metric's range, if
    that is finite.
    `constant_of_human`: the constant's share of people's score, against the same reference sets as
    people. It is not `constant` / `human`: most metrics rise with the number of references.
    `rare_of_human`: the share of people's score that is lost when rare words become unknown; if it
    is near 0, the metric is blind to them; None if the first references have no rare words.
    """

    human: float | None
    human_of_range: float | None
    constant: float | None
    constant_of_range: float | None
    constant_of_human: float | None
    rare_of_human: float | None


def derive_health(rows: Iterable[ProbeTableRow]) -> dict[str, ProbedMetricHealth]:
    """The health of each metric, from any probes' rows together."""
    by_name = {(row.probe, row.name): row for row in rows if row.reason is None}
    human, constant, as_people = (
        by_name[key].scores if key in by_name else {}
        for key in (
            ("human", PEOPLE_ROW),
            ("single", CONSTANT_ROW),
            ("single", CONSTANT_AS_PEOPLE_ROW),
        )
    )
    rare = by_name.get(("rare", name_threshold_row(_RARE)))
    lost = rare.drop if rare and rare.share != 0 else {}  # none was replaced: nothing is known
    names = dict.fromkeys(name for row in by_name.values() for name in row.scores)
    return {name: _health(name, human, constant, as_people, lost) for name in names}


def _health(
    name: str, human: Values, constant: Values, as_people: Values, lost: Values
) -> ProbedMetricHealth:
    people, one = human.get(name), constant.get(name)
    spec = catalogue.find_metric(name)
    if not spec.higher_is_better:
        return ProbedMetricHealth(people, None, one, None, None, None)
    return ProbedMetricHealth(
        human=people,
        human_of_range=_of_range(people, *spec.range),
        constant=one,
        constant_of_range=_of_range(one, *spec.range),
        constant_of_human=_of(as_people.get(name), people),
        rare_of_human=_of(lost.get(name), people),
    )


def _of_range(value: float | None, low: float, high: float) -> float | None:
    return None if value is None else _of(value - low, high - low)


def _of(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None or not math.isfinite(part) or not math.isfinite(whole):
        return None
    return part / whole if whole > 0 else None
