"""Margins of gates: whether a score is worse than the baseline's by less than a margin, or better,
by the paired interval of their difference. All such tests of an evaluation are corrected together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import NamedTuple

from prescore.models.evaluations import Verdict
from service.contract.gates.evidence import (
    OPEN,
    BaselineDifference,
    BaselineScore,
    Decision,
    ExpectedDifference,
    GateEvidence,
    find_block,
    is_higher_better,
)
from service.contract.gates.expressions import convert_to_float
from service.contract.wording import count_noun

LEVEL = 0.025  # of all tests together, in each direction, as of the intervals
_NORMAL = NormalDist()
_CRITICAL = _NORMAL.inv_cdf(1 - LEVEL)
_UNTESTED = "the difference cannot be tested (few images, or an infinite score)"
_FAR = 40.0  # standard errors
_TWO_DIGITS = Context(prec=2, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class Margin:
    """Amount, or share of the baseline's value."""

    amount: Fraction
    is_relative: bool = False

    def at(self, baseline: float) -> float:
        amount = convert_to_float(self.amount)
        return amount * abs(baseline) if self.is_relative else amount

    def __str__(self) -> str:
        amount = convert_to_float(self.amount)
        return f"{100 * amount:g} %" if self.is_relative else f"{amount:g}"

    def format_wider(self, value: float, baseline: float) -> str:
        """Format a value as this margin is written, rounded up to two digits."""
        if not self.is_relative or not baseline:
            return f"{_round_up(value):g}"
        return f"{_round_up(100 * value / abs(baseline)):g} %"


@dataclass(frozen=True)
class MarginGate:
    """No metric may be worse than the baseline's by as much as the margin; of 0: each is better."""

    text: str
    metrics: tuple[str, ...]
    margin: Margin

    @property
    def needs_baseline(self) -> bool:
        return True

    def find_margin(self, baseline: float) -> float:
        return self.margin.at(baseline)


@dataclass(frozen=True)
class MarginTest:
    """Test whether the difference and the margin together are above 0, where more is better; `low`
    and `high`: the 95 % interval of their sum.
    """

    value: float
    low: float
    high: float

    @property
    def rise(self) -> float:
        """Standard errors above 0: more than 1.96 where the whole interval is."""
        return _count_errors(self.value, self.value - self.low)

    @property
    def fall(self) -> float:
        return _count_errors(-self.value, self.high - self.value)

    def estimate_images(self, images: int, critical: float) -> int | None:
        """Estimate how many images would decide it; None where that cannot be told."""
        to_bound = self.value - self.low if self.value > 0 else self.high - self.value
        error = to_bound / _CRITICAL
        if abs(self.value) < error / 2 or not self.value:
            return None
        return max(images + 1, math.ceil(images * (critical * error / self.value) ** 2))

    def find_lack(self, critical: float) -> float:
        """Find by how much more the margin would have to be, for the test to pass."""
        return critical * (self.value - self.low) / _CRITICAL - self.value


@dataclass(frozen=True)
class ExpectedTest:
    """Result that the test will have at the least: the sum of difference and margin will be in
    [low, high], with this standard error.
    """

    low: float
    high: float
    error: float

    @property
    def rise(self) -> float:
        return _divide_error(self.low, self.error)

    @property
    def fall(self) -> float:
        return _divide_error(-self.high, self.error)


class TestedMetric(NamedTuple):
    """Metric of a gate with the result of its test, or the one that is expected."""

    test: MarginTest | ExpectedTest
    baseline: BaselineScore
    compared: BaselineDifference | ExpectedDifference


MarginKey = tuple[MarginGate, str]  # and a metric


def decide_margin_gates(
    asked: Sequence[MarginGate], evidence: GateEvidence
) -> dict[MarginGate, list[Decision]]:
    """Decide each metric of each gate. A test that is not there yet counts as lost, and one that is
    expected as far as it is sure, so that what is decided before stays so.
    """
    keys = [(gate, metric) for gate in dict.fromkeys(asked) for metric in gate.metrics]
    found = {(gate, metric): _find_test(gate.margin, metric, evidence) for gate, metric in keys}
    verdicts = correct_verdicts(
        {key: each.test if isinstance(each, TestedMetric) else None for key, each in found.items()}
    )
    waiting = {key for key, each in found.items() if _is_waiting(each, verdicts[key])}
    decided: dict[MarginGate, list[Decision]] = {gate: [] for gate in asked}
    for key, each in found.items():
        gate, _ = key
        decision: Decision
        if not isinstance(each, TestedMetric):
            decision = each
        elif verdicts[key] == "undecided" and waiting:
            decision = OPEN
        else:
            decision = verdicts[key], _describe(gate.margin, each, verdicts[key], len(keys))
        decided[gate].append(decision)
    return decided


def _is_waiting(found: TestedMetric | Decision, verdict: Verdict) -> bool:
    """Tell whether the result of a test may still change."""
    if not isinstance(found, TestedMetric):
        return found == OPEN
    return isinstance(found.test, ExpectedTest) and verdict == "undecided"


def _find_test(margin: Margin, metric: str, evidence: GateEvidence) -> TestedMetric | Decision:
    baseline, compared = evidence.baselines.get(metric), evidence.compared.get(metric)
    blocked = find_block(metric, baseline, evidence)
    if blocked is not None:
        return blocked
    if isinstance(compared, str):
        return "undecided", compared
    is_measured = metric in evidence.measured
    if compared is None or not is_measured or not isinstance(baseline, BaselineScore):
        return OPEN
    added = margin.at(baseline.value)
    if isinstance(compared, ExpectedDifference):
        low, high = _add_margin(metric, (compared.low, compared.high), added)
        return TestedMetric(ExpectedTest(low, high, compared.error), baseline, compared)
    if compared.interval is None:
        return "undecided", _UNTESTED
    ends = compared.interval[0], compared.difference, compared.interval[1]
    low, value, high = _add_margin(metric, ends, added)
    if not all(map(math.isfinite, (low, value, high))):
        return "undecided", _UNTESTED
    return TestedMetric(MarginTest(value, low, high), baseline, compared)


def _add_margin(metric: str, ends: Sequence[float], margin: float) -> list[float]:
    """Add the margin to ascending differences, turned so that more is better."""
    turned = ends if is_higher_better(metric) else [-each for each in reversed(ends)]
    return [each + margin for each in turned]


def correct_verdicts(
    tests: Mapping[MarginKey, MarginTest | ExpectedTest | None],
) -> dict[MarginKey, Verdict]:
    """Correct the verdicts on tests, of which one without a result is None (Holm, each direction
    for itself).
    """
    passed = _reject({key: test.rise if test else -_FAR for key, test in tests.items()})
    failed = _reject({key: test.fall if test else -_FAR for key, test in tests.items()})
    return {
        key: "passed" if key in passed else "failed" if key in failed else "undecided"
        for key in tests
    }


def _reject(errors: Mapping[MarginKey, float]) -> set[MarginKey]:
    """Choose those that are far enough above 0: the farthest of m as at a level of 1 / m."""
    found: set[MarginKey] = set()
    for key in sorted(errors, key=lambda each: -errors[each]):
        if errors[key] <= find_critical_value(len(errors) - len(found)):
            break
        found.add(key)
    return found


def find_critical_value(tests: int) -> float:
    """Find the standard errors that decide the first of so many tests."""
    return _NORMAL.inv_cdf(1 - LEVEL / tests)


def _describe(margin: Margin, tested: TestedMetric, verdict: Verdict, tests: int) -> str:
    said = _describe_difference(tested)
    said += f", margin {margin}" if margin.amount else ""
    said += f"; one of {tests} differences that are tested together (Holm)" if tests > 1 else ""
    return f"{said}: {_advise(margin, tested, tests)}" if verdict == "undecided" else said


def _describe_difference(tested: TestedMetric) -> str:
    baseline, compared = tested.baseline, tested.compared
    on = f"on {baseline.value:.4g} ({baseline})"
    if isinstance(compared, ExpectedDifference):
        between = f"between {compared.low:+.4g} and {compared.high:+.4g}"
        return f"{between} expected {on}, from {compared.images} of {compared.of} images"
    assert compared.interval is not None
    low, high = compared.interval
    return f"{compared.difference:+.4g} {on}, between {low:+.4g} and {high:+.4g} (95 %)"


def _advise(margin: Margin, tested: TestedMetric, tests: int) -> str:
    """Say what would decide a test."""
    test, now = tested.test, tested.compared.images
    assert isinstance(test, MarginTest)
    critical = find_critical_value(tests)
    images = None if now is None else test.estimate_images(now, critical)
    if images is None or now is None:
        said = "how many images it needs cannot be told"
    else:
        said = f"needs about {count_noun(_round_images(images - now), 'more image')}"
    if not margin.amount:
        return said
    value = tested.baseline.value
    wider = margin.at(value) + test.find_lack(critical)
    return f"{said}, or a margin of {margin.format_wider(wider, value)}"


def _count_errors(value: float, to_bound: float) -> float:
    """Count standard errors of a value, by how far its interval's bound is from it."""
    return _divide_error(value, to_bound / _CRITICAL)


def _divide_error(value: float, error: float) -> float:
    """Divide a value by its standard error; a bound of it stands for infinity."""
    if error > 0:
        return min(_FAR, value / error)
    return math.copysign(_FAR, value) if value else 0.0


def _round_up(value: float) -> Decimal:
    return _TWO_DIGITS.create_decimal(repr(value))


def _round_images(number: int) -> int:
    """Round to two digits."""
    return round(number, min(0, 2 - len(str(number))))
