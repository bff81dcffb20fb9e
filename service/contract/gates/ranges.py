"""Gates that decide nothing: thresholds outside of a metric's range."""

import math
from itertools import product

from service.contract import wording
from service.contract.errors import InvalidRequest
from service.contract.gates.expressions import BASELINE, LinearExpression, convert_to_float
from service.contract.gates.gates import ParsedGate, ThresholdGate
from service.contract.gates.margins import MarginGate
from service.contract.metrics import catalogue

_PERCENT = 100


def check_gate_range(gate: ParsedGate) -> None:
    """Raise for a threshold that no value, or every value, of a metric of captions meets, as where
    scores are meant in percent. What every score meets by convention, such as `>= 0`, is taken.
    """
    if isinstance(gate, MarginGate):
        _check_margin(gate)
        return
    if (
        not isinstance(gate, ThresholdGate)
        or catalogue.find_metric(gate.metric).family != "postgen"
    ):
        return
    possible = _possible(gate, gate.bound)
    if len(possible) == 2 or (possible == {True} and _is_usual(gate)):
        return
    low, high = catalogue.find_metric(gate.metric).range
    between = f"at least {low:g}" if math.isinf(high) else f"between {low:g} and {high:g}"
    always = "always passes" if True in possible else "can never pass"
    raise InvalidRequest(f"{gate.text!r} {always}: {gate.metric} is {between}{_question(gate)}")


def _check_margin(gate: MarginGate) -> None:
    """Raise for a margin that no difference of a metric reaches."""
    for metric in gate.metrics:
        low, high = catalogue.find_metric(metric).range
        if not gate.margin.is_relative and gate.margin.amount >= high - low:
            meant = f"{gate.margin} %" if gate.margin.amount < _PERCENT else "1 %"
            question = wording.word_suggestion([meant])
            raise InvalidRequest(
                f"{gate.text!r} always passes: {metric} is between {low:g} and {high:g}{question}"
            )


def _possible(gate: ThresholdGate, bound: LinearExpression) -> set[bool]:
    """Find the possible outcomes of the gate: a linear condition has them at the ends of ranges."""
    low, high = catalogue.find_metric(gate.metric).range
    if not bound.coefficient:
        bounds = [bound.constant]
    elif math.isinf(low) or math.isinf(high):
        return {True, False}
    else:
        bounds = [bound.at(low), bound.at(high)]
    return {gate.holds(value, at) for value, at in product((low, high), bounds)}


def _is_usual(gate: ThresholdGate) -> bool:
    bound = gate.bound
    return not bound.coefficient and bound.constant in (
        0,
        *catalogue.find_metric(gate.metric).range,
    )


def _question(gate: ThresholdGate) -> str:
    """The same in hundredths, where scores were meant in percent."""
    meant = LinearExpression(gate.bound.coefficient, gate.bound.constant / _PERCENT)
    if meant.coefficient not in (0, 1) or len(_possible(gate, meant)) < 2:
        return ""
    number = f"{convert_to_float(abs(meant.constant)):.6g}"
    sign = "-" if meant.constant < 0 else "+" if meant.coefficient else ""
    text = f"{BASELINE} {sign} {number}" if meant.coefficient else f"{sign}{number}"
    return wording.word_suggestion([text])
