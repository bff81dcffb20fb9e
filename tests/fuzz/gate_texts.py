"""Texts as gates: exact arithmetic as Python's, verdicts of any evidence, questions that hold."""

import re
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from fuzz import refusals
from service.contract.errors import RequestRefused
from service.contract.gates import gates, ranges
from service.contract.gates.evidence import (
    BaselineDifference,
    BaselineScore,
    GateEvidence,
    ScoreBounds,
)
from service.contract.gates.gates import ParsedGate, ThresholdGate
from service.contract.metrics import catalogue

_NUMBER = re.compile(r"[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]{1,2})?|\.[0-9]+(?:[eE][+-]?[0-9]{1,2})?")
_ASKED = re.compile(r"did you mean (?P<quote>['\"])(?P<text>.*)(?P=quote)\?", re.DOTALL)
_VALUES = (0.0, 0.3, -1.0, 1.7e308, 5e-324)  # what is not finite is no evidence
_VERDICTS = (None, "passed", "failed", "undecided", "not_comparable")
_NAMES = (*catalogue.METRICS, *catalogue.GROUPS, *catalogue.ALIASES, gates.NO_DROP, "cider", "x")
_TESTS = ("not_worse", "better", "not_worse ( cider_d ,")
_PARTS = (
    *(">=", "<=", ">", "<", "=>", "==", "≥", "+", "-", "*", "/", "(", ")", ",", " ", "\t"),
    *("%", "2 %", *_TESTS),
    *("baseline", "0", "0.3", ".5", "3.", "1e2", "1e99", "2E-99", "007", "40", "1e999", "9" * 60),
    *("\n", "\0", "é", "٣", "\u202e", "\u2028", "'", '"', "**", "//", "--", "()", "_"),
)
TEXTS = st.lists(st.sampled_from((*_NAMES, *_PARTS)), max_size=12).map(
    lambda parts: " ".join(parts).encode()
)


def check(data: bytes) -> None:
    text = data.decode("utf-8", "ignore")
    found = refusals.refused_or(lambda: gates.parse_gate(text))
    if isinstance(found, RequestRefused):
        _check_question(found)
        return
    assert gates.parse_gate(text) == found
    assert gates.list_gate_metrics([text]) == [*dict.fromkeys(found.metrics)]
    refused = refusals.refused_or(lambda: ranges.check_gate_range(found))
    if isinstance(found, ThresholdGate):
        _check_bound(found)
    for value, past in product(_VALUES, repeat=2):
        _check_decided(found, value, past)
    if isinstance(refused, RequestRefused):
        assert isinstance(found, ThresholdGate)


def _check_question(refused: RequestRefused) -> None:
    """A gate that is offered can be read."""
    asked = _ASKED.search(refused.detail)
    if asked is not None and "\\" not in asked["text"]:
        gates.parse_gate(asked["text"])


def _check_bound(gate: ThresholdGate) -> None:
    expression = re.split("[<>]=?", gate.text, maxsplit=1)[1].strip()
    for value in (0.0, 0.3, -7.25):
        assert gate.bound.at(value) == evaluate(expression, value)


def evaluate(expression: str, baseline: float) -> Fraction:
    """Python's precedence and exact numbers: an evaluator that shares nothing with ours."""
    exact = _NUMBER.sub(lambda found: f"Fraction('{found[0]}')", expression)
    known = {"Fraction": Fraction, "baseline": Fraction(repr(baseline))}
    return eval(exact, {"__builtins__": {}}, known)  # noqa: S307


def _check_decided(gate: ParsedGate, value: float, past: float) -> None:
    score = {name: ScoreBounds(value, value, "a|v:1") for name in gate.metrics}
    beside = {name: BaselineScore("ev_1", past, "a|v:1") for name in gate.metrics}
    ends = (value - 0.3, value + abs(past))
    compared = {name: BaselineDifference(value, 0.01, None, ends, 9) for name in gate.metrics}
    for evidence in (
        GateEvidence({}, {}, {}, {}, {}),
        GateEvidence(score, {}, beside, {}, {}),
        GateEvidence(score, {}, beside, compared, {}),
        GateEvidence({}, dict.fromkeys(gate.metrics, "lost"), {}, {}, {}),
    ):
        ((verdict, reason),) = gates.decide_gates([gate], evidence)
        assert verdict in _VERDICTS
        refusals.check(reason or "", None)
