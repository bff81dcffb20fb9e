"""Gates: conditions on an evaluation's scores, parsed from text, and their verdicts.

    METRIC >= EXPRESSION            or <=, >, <; linear in `baseline`: `cider_d >= baseline - 0.01`
    no_significant_drop(METRIC, …)  against the baseline, by the paired test of a comparison

Nothing in a gate is run as code. Numbers are compared as decimals: 0.3 is not below 0.3.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from prescore.models.evaluations import Verdict
from service.contract import wording
from service.contract.errors import InvalidRequest, RequestRefused, UnknownMetric
from service.contract.gates import expressions
from service.contract.gates.expressions import (
    GateReader,
    LinearExpression,
    convert_to_fraction,
    read_sum,
)
from service.contract.metrics import catalogue, signatures

Decision = tuple[Verdict | None, str | None]  # the verdict and its reason
OPEN: Decision = (None, None)

MAX_LENGTH = 200  # of a gate's text
SIGNIFICANT = 0.05  # two-sided, each metric separately
NO_DROP = "no_significant_drop"

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


ParsedGate = ThresholdGate | NoDropGate


@dataclass(frozen=True)
class ScoreBounds:
    """The bounds of a score on the whole split; `low` equals `high` once it is computed."""

    low: float
    high: float
    signature: str


@dataclass(frozen=True)
class BaselineScore:
    """A metric's score in the baseline's evaluation. `scored_on`: the version and split of its
    dataset; `label`: by which it was found.
    """

    evaluation: str
    value: float
    signature: str
    scored_on: str | None = None
    label: str | None = None
    failed: bool = False  # its own gates

    def __str__(self) -> str:
        on = "" if self.scored_on is None else f" of {self.scored_on}"
        label = "" if self.label is None else f", {self.label}"
        failed = ", which failed its own gates" if self.failed else ""
        return f"{self.evaluation}{on}{label}{failed}"


@dataclass(frozen=True)
class BaselineDifference:
    """A comparison with the baseline; `difference` is this score - the baseline's."""

    difference: float
    p: float | None
    minimum_detectable: float | None


@dataclass(frozen=True)
class GateEvidence:
    """Evidence so far, by metric as gates name it. A text in `baselines` and `compared` says
    why there will never be a value; so does `lost` for scores. `distrusted` says why gates may
    not use a metric.
    """

    measured: Mapping[str, ScoreBounds]
    lost: Mapping[str, str]
    baselines: Mapping[str, BaselineScore | str]
    compared: Mapping[str, BaselineDifference | str]
    distrusted: Mapping[str, str]


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
    return name in catalogue.METRICS or name in catalogue.ALIASES or name == NO_DROP


def _parse(text: str) -> ParsedGate:
    reader = GateReader(text)
    if reader.take(NO_DROP):
        found: ParsedGate = NoDropGate(text, _compared_metrics(reader))
    else:
        metric = _metric(reader)
        relation = reader.demand_sign(*_RELATIONS)
        found = ThresholdGate(text, metric, relation, read_sum(reader))
    reader.demand("end", "the end, or a sign of arithmetic")
    return found


def _metric(reader: GateReader) -> str:
    name = reader.demand("name", f"a metric's name or {NO_DROP}").text
    if name in catalogue.GROUPS:
        raise InvalidRequest(f"{name} is several metrics: {', '.join(catalogue.GROUPS[name])}")
    catalogue.find_metric(name)
    return name


def _compared_metrics(reader: GateReader) -> tuple[str, ...]:
    reader.demand_sign("(")
    names = [reader.demand("name", "a metric's name").text]
    while reader.demand_sign(",", ")") == ",":
        names.append(reader.demand("name", "a metric's name").text)
    for name in (found := catalogue.expand_groups(names)):
        spec = catalogue.find_metric(name)
        if spec.higher_is_better is None or not catalogue.is_summed(name):
            raise InvalidRequest(
                f"{NO_DROP} cannot take {name}: expected a metric that is better high or low, and "
                "a sum or a mean over images"
            )
    return tuple(found)


def list_gate_metrics(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name for text in texts for name in parse_gate(text).metrics))


def decide_gate(gate: ParsedGate, evidence: GateEvidence) -> Decision:
    """The verdict and its reason; (None, None) while it is open."""
    if isinstance(gate, ThresholdGate):
        return _decide_threshold(gate, evidence)
    found = [_decide_drop(name, evidence) for name in gate.metrics]
    details = [
        f"{name}: {text}" for name, (_, text) in zip(gate.metrics, found, strict=True) if text
    ]
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
    blocked = _blocked(gate.metric, baseline, evidence)
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
    against = f"; the baseline is {of_past} ({past})" if past else ""
    return "passed" if passed else "failed", said + against


def _decide_drop(metric: str, evidence: GateEvidence) -> Decision:
    baseline = evidence.baselines.get(metric)
    measured = evidence.measured.get(metric)
    blocked = _blocked(metric, baseline, evidence)
    if blocked is not None or measured is None or not isinstance(baseline, BaselineScore):
        return blocked or OPEN
    compared = evidence.compared.get(metric)
    if isinstance(compared, BaselineDifference):
        return _judge_drop(metric, compared, baseline)
    worst = measured.low if _higher(metric) else measured.high
    if not _is_worse(metric, worst - baseline.value):
        return "passed", f"no drop below {baseline.value:.4g} ({baseline})"
    return OPEN if compared is None else ("undecided", compared)


def _judge_drop(metric: str, compared: BaselineDifference, baseline: BaselineScore) -> Decision:
    if compared.p is None:
        return "undecided", "the difference cannot be tested (one image, or an infinite score)"
    said = f"{compared.difference:+.4g} on {baseline.value:.4g} ({baseline})"
    said += f", p = {compared.p:.2g}"
    if compared.minimum_detectable:
        said += f"; a drop of {compared.minimum_detectable:.2g} would be found 4 times in 5"
    drops = _is_worse(metric, compared.difference) and compared.p < SIGNIFICANT
    return "failed" if drops else "passed", said


def _blocked(
    metric: str, baseline: BaselineScore | str | None, evidence: GateEvidence
) -> Decision | None:
    """Verdict and reason if this metric cannot decide a gate, whatever its value; else None."""
    if metric in evidence.distrusted:
        return "undecided", evidence.distrusted[metric]
    if isinstance(baseline, str):
        return "not_comparable", baseline
    measured = evidence.measured.get(metric)
    if measured is None and metric in evidence.lost:
        return "undecided", evidence.lost[metric]
    if baseline is None or measured is None:
        return None
    differs = signatures.describe_signature_difference(measured.signature, baseline.signature)
    if differs is None:
        return None
    sides = f"this evaluation's and the baseline's ({baseline})"
    return "not_comparable", f"{metric} was not computed alike: {differs} ({sides})"


def _higher(metric: str) -> bool:
    return catalogue.find_metric(metric).higher_is_better is True


def _is_worse(metric: str, difference: float) -> bool:
    return difference < 0 if _higher(metric) else difference > 0


def _texts(*numbers: Fraction) -> list[str]:
    """The numbers as text, with the fewest digits that show different numbers differently."""
    for digits in (4, 6, 9, 17):
        texts = [f"{expressions.convert_to_float(at):.{digits}g}" for at in numbers]
        if len(set(texts)) == len(set(numbers)):
            break
    return texts
