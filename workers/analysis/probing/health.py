"""How far a metric can be trusted on a dataset, from its probes' rows."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from service.contract.metrics import catalogue
from workers.analysis.probing.first_references import threshold
from workers.analysis.probing.people import PEOPLE
from workers.analysis.probing.single import CONSTANT, CONSTANT_AS_PEOPLE
from workers.analysis.probing.table import Row, Values

_RARE = 30  # times in training


@dataclass(frozen=True)
class Health:
    """What the probes say about one metric. A number is None if its probe was not asked for or has
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


def health(rows: Iterable[Row]) -> dict[str, Health]:
    """The health of each metric, from any probes' rows together."""
    by_name = {(row.probe, row.name): row for row in rows if row.reason is None}
    human, constant, as_people = (
        by_name[key].scores if key in by_name else {}
        for key in (("human", PEOPLE), ("single", CONSTANT), ("single", CONSTANT_AS_PEOPLE))
    )
    rare = by_name.get(("rare", threshold(_RARE)))
    lost = rare.drop if rare and rare.share != 0 else {}  # none was replaced: nothing is known
    names = dict.fromkeys(name for row in by_name.values() for name in row.scores)
    return {name: _health(name, human, constant, as_people, lost) for name in names}


def _health(name: str, human: Values, constant: Values, as_people: Values, lost: Values) -> Health:
    people, one = human.get(name), constant.get(name)
    spec = catalogue.metric(name)
    if not spec.higher_is_better:
        return Health(people, None, one, None, None, None)
    return Health(
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
