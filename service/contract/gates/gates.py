"""Gates: conditions on an evaluation's scores, parsed from text, and their verdicts.

    METRIC >= EXPRESSION            or <=, >, <; linear in `baseline`: `cider_d >= baseline - 0.01`
    not_worse(METRIC, …, MARGIN)    than the baseline by as much as 0.01 or 2 %, by the interval of
                                    their paired difference
    better(METRIC, …)               than the baseline, by the same interval
    no_significant_drop(METRIC, …)  against the baseline, by the paired test of a comparison

Nothing in a gate is run as code. Numbers are compared as decimals: 0.3 is not below 0.3.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from prescore.models.evaluations import Verdict
from service.contract import wording
from service.contract.errors import InvalidRequest, RequestRefused, UnknownMetric
from service.contract.gates import expressions
from service.contract.gates.evidence import (
    OPEN,
    BaselineDifference,
    BaselineScore,
    Decision,
    GateEvidence,
    find_block,
    is_higher_better,
)
from service.contract.gates.expressions import (
    GateReader,
    LinearExpression,
    convert_to_fraction,
    read_sum,
)
from service.contract.gates.margins import Margin, MarginGate, decide_margin_gates
from service.contract.metrics import catalogue

MAX_LENGTH = 200  # of a gate's text
SIGNIFICANT = 0.05  # two-sided, each metric separately
NO_DROP, NOT_WORSE, BETTER = "no_significant_drop", "not_worse", "better"
_TESTED = (NO_DROP, NOT_WORSE, BETTER)
_PERCENT = 100

_RELATIONS: Mapping[str, tuple[Callable[[Fraction | float, Fraction], bool], str]] = {
    ">=": (operator.ge, "<"),  # the test, and the sign to show where it fails
    "<=": (operator.le, ">"),
    ">": (operator.gt, "<="),
    "<": (operator.lt, ">="),
}


@dataclass(frozen=True)
class ThresholdGate:
    """`metric relation bound`, such as cider_d >= 0.4; `metric` as the gate names it."""

    text: str
    metric: str
    relation: str
    bound: LinearExpression

    @property
    def metrics(self) -> tuple[str, ...]:
        return (self.metric,)

    @property
    def needs_baseline(self) -> bool:
        return self.bound.coefficient != 0

    def find_margin(self, baseline: float) -> float | None:
        """Find by how much the value may be beyond the baseline's; None for a fixed bound."""
        if not self.needs_baseline:
            return None
        beyond = self.bound.at(baseline) - convert_to_fraction(baseline)
        return expressions.convert_to_float(beyond if "<" in self.relation else -beyond)

    def holds(self, value: Fraction | float, bound: Fraction) -> bool:
        test, _ = _RELATIONS[self.relation]
        return test(value, bound)


@dataclass(frozen=True)
class NoDropGate:
    """No metric may be significantly worse than the baseline's (paired test over images)."""

    text: str
    metrics: tuple[str, ...]

    @property
    def needs_baseline(self) -> bool:
        return True

    def find_margin(self, baseline: float) -> None:
        """Find none: chance decides, no amount."""


ParsedGate = ThresholdGate | NoDropGate | MarginGate


def parse_gate(text: str) -> ParsedGate:
    """Parse a gate. Raises InvalidRequest with the place of an error, UnknownMetric for a name;
    both suggest what was meant.
    """
    if len(text) > MAX_LENGTH:
        raise InvalidRequest(f"expected a gate of at most {MAX_LENGTH} characters: {len(text)}")
    try:
        return _parse(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{error.detail}{_question(text)}") from None
    except UnknownMetric as error:
        if question := _question(text):
            detail = error.detail.partition(wording.QUESTION)[0]
            raise UnknownMetric(f"{detail}{question}", name=error.name) from None
        raise


def _question(text: str) -> str:
    meant = expressions.repair_gate(text, _is_name)
    if meant == text:
        return ""
    try:
        _parse(meant)
    except RequestRefused:
        return ""
    return f"{wording.QUESTION} {meant!r}?"


def _is_name(name: str) -> bool:
    return name in catalogue.METRICS or name in catalogue.ALIASES or name in _TESTED


def _parse(text: str) -> ParsedGate:
    reader = GateReader(text)
    found: ParsedGate
    if test := reader.take(*_TESTED):
        names, margin = _read_arguments(reader, test)
        metrics = _expand_tested(names, test)
        found = NoDropGate(text, metrics) if margin is None else MarginGate(text, metrics, margin)
    else:
        metric = _metric(reader)
        relation = reader.demand_sign(*_RELATIONS)
        found = ThresholdGate(text, metric, relation, read_sum(reader))
    reader.demand("end", "the end, or a sign of arithmetic")
    return found


def _metric(reader: GateReader) -> str:
    name = reader.demand("name", f"a metric's name, {' or '.join(_TESTED)}").text
    if name in catalogue.GROUPS:
        raise InvalidRequest(f"{name} is several metrics: {', '.join(catalogue.GROUPS[name])}")
    catalogue.find_metric(name)
    return name


def _read_arguments(reader: GateReader, test: str) -> tuple[list[str], Margin | None]:
    """Names in parentheses, and the margin: at their end for `not_worse`, 0 for `better`."""
    reader.demand_sign("(")
    names = [reader.demand("name", "a metric's name").text]
    ends, expected = ((")",), ", or )") if test != NOT_WORSE else ((), ", and a margin as 2 %")
    while (reader.take(",", *ends) or reader.refuse(expected)) == ",":
        if test == NOT_WORSE and reader.next.kind != "name":
            return names, _read_margin(reader)
        names.append(reader.demand("name", "a metric's name").text)
    return names, Margin(Fraction(0)) if test == BETTER else None


def _read_margin(reader: GateReader) -> Margin:
    at = reader.next
    amount = Fraction(reader.demand("number", "a metric's name, or a margin as 0.01 or 2 %").text)
    is_relative = reader.take("%") is not None
    if not amount or (is_relative and amount >= _PERCENT):
        reader.refuse(f"a margin above 0{' and below 100 %' * is_relative}", at)
    reader.demand_sign(")")
    return Margin(amount / _PERCENT if is_relative else amount, is_relative)


def _expand_tested(names: Sequence[str], test: str) -> tuple[str, ...]:
    for name in (found := catalogue.expand_groups(names)):
        spec = catalogue.find_metric(name)
        if spec.higher_is_better is None or not catalogue.is_summed(name):
            raise InvalidRequest(
                f"{test} cannot take {name}: expected a metric that is better high or low, and "
                "a sum or a mean over images"
            )
    return tuple(found)


def list_gate_metrics(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name for text in texts for name in parse_gate(text).metrics))


def decide_gates(asked: Sequence[ParsedGate], evidence: GateEvidence) -> list[Decision]:
    """Decide each gate: its verdict and the reason; (None, None) while it is open."""
    together = decide_margin_gates(
        [gate for gate in asked if isinstance(gate, MarginGate)], evidence
    )
    return [
        _join_decisions(gate.metrics, together[gate])
        if isinstance(gate, MarginGate)
        else _decide_alone(gate, evidence)
        for gate in asked
    ]


def _decide_alone(gate: ThresholdGate | NoDropGate, evidence: GateEvidence) -> Decision:
    if isinstance(gate, ThresholdGate):
        return _decide_threshold(gate, evidence)
    return _join_decisions(gate.metrics, [_decide_drop(name, evidence) for name in gate.metrics])


def _join_decisions(metrics: Sequence[str], found: Sequence[Decision]) -> Decision:
    details = [f"{name}: {text}" for name, (_, text) in zip(metrics, found, strict=True) if text]
    return combine_verdicts([verdict for verdict, _ in found]), "; ".join(details) or None


def combine_verdicts(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """The verdict on all gates; None while one is open, and where there are no gates."""
    found = set(verdicts)
    if None in found:
        return None
    order: tuple[Verdict, ...] = ("failed", "not_comparable", "undecided", "passed")
    return next((verdict for verdict in order if verdict in found), None)


def _decide_threshold(gate: ThresholdGate, evidence: GateEvidence) -> Decision:
    baseline = evidence.baselines.get(gate.metric) if gate.needs_baseline else None
    measured = evidence.measured.get(gate.metric)
    blocked = find_block(gate.metric, baseline, evidence)
    if blocked is not None or measured is None:
        return blocked or OPEN
    past = baseline if isinstance(baseline, BaselineScore) else None
    bound = gate.bound.at(past.value if past else 0)
    low, high = convert_to_fraction(measured.low), convert_to_fraction(measured.high)
    _, otherwise = _RELATIONS[gate.relation]
    passed = gate.holds(low, bound)
    if passed != gate.holds(high, bound):
        return OPEN
    least, most, at, of_past = _texts(
        low, high, bound, convert_to_fraction(past.value if past else 0)
    )
    found = least if low == high else f"between {least} and {most}"
    said = f"{gate.metric} {found} {gate.relation if passed else otherwise} {at}"
    said += f"; the baseline is {of_past} ({past})" if past else ""
    ends = measured.interval or (measured.low, measured.high)
    if len({gate.holds(convert_to_fraction(end), bound) for end in ends}) > 1:
        said += "; the bound is inside its interval"
    return "passed" if passed else "failed", said


def _decide_drop(metric: str, evidence: GateEvidence) -> Decision:
    baseline = evidence.baselines.get(metric)
    measured = evidence.measured.get(metric)
    blocked = find_block(metric, baseline, evidence)
    if blocked is not None or measured is None or not isinstance(baseline, BaselineScore):
        return blocked or OPEN
    compared = evidence.compared.get(metric)
    if isinstance(compared, BaselineDifference):
        return _judge_drop(metric, compared, baseline)
    worst = measured.low if is_higher_better(metric) else measured.high
    if not _is_worse(metric, worst - baseline.value):
        return "passed", f"no drop below {baseline.value:.4g} ({baseline})"
    return ("undecided", compared) if isinstance(compared, str) else OPEN


def _judge_drop(metric: str, compared: BaselineDifference, baseline: BaselineScore) -> Decision:
    if compared.p is None:
        return "undecided", "the difference cannot be tested (one image, or an infinite score)"
    said = f"{compared.difference:+.4g} on {baseline.value:.4g} ({baseline})"
    said += f", p = {compared.p:.2g}"
    if compared.minimum_detectable:
        said += f"; a drop of {compared.minimum_detectable:.2g} would be found 4 times in 5"
    drops = _is_worse(metric, compared.difference) and compared.p < SIGNIFICANT
    return "failed" if drops else "passed", said


def _is_worse(metric: str, difference: float) -> bool:
    return difference < 0 if is_higher_better(metric) else difference > 0


def _texts(*numbers: Fraction) -> list[str]:
    """The numbers as text, with the fewest digits that show different numbers differently."""
    for digits in (4, 6, 9, 17):
        texts = [f"{expressions.convert_to_float(at):.{digits}g}" for at in numbers]
        if len(set(texts)) == len(set(numbers)):
            break
    return texts
