"""What becomes of a gate, by what is known."""

from dataclasses import fields

import pytest

from service.contract.gates import gates
from service.contract.gates.evidence import (
    BaselineDifference,
    BaselineScore,
    GateEvidence,
    ScoreBounds,
)

PAST = BaselineScore("ev_past", 0.40, "cider_d|refs:5|tok:ptb|v:2")


def _known(value, high=None, signature=PAST.signature):
    return ScoreBounds(value, value if high is None else high, signature)


def _decide(text, metric="cider_d", **evidence):
    nothing = {field.name: {} for field in fields(GateEvidence)}
    given = {kind: {metric: found} for kind, found in evidence.items()}
    (found,) = gates.decide_gates([gates.parse_gate(text)], GateEvidence(**nothing | given))
    return found


@pytest.mark.parametrize(
    ("gate", "value", "verdict"),
    [
        ("cider_d >= 0.45", 0.45, "passed"),
        ("cider_d > 0.45", 0.45, "failed"),
        ("cider_d <= 0.45", 0.45, "passed"),
        ("cider_d < 0.45", 0.45, "failed"),
        ("cider_d >= 0.45", 0.4499999999999999, "failed"),
        ("cider_d >= 0.1 + 0.2", 0.3, "passed"),
        ("cider_d >= baseline - 0.01", 0.39, "passed"),
        ("cider_d >= baseline - 0.01", 0.3899999, "failed"),
        ("cider_d <= baseline * 1.02", 0.408, "passed"),
        ("cider_d <= baseline * 1.02", 0.4080001, "failed"),
        ("cider_d >= -1e99", -1e300, "failed"),
    ],
)
def test_a_threshold_passes_where_it_holds(gate, value, verdict):
    found, detail = _decide(gate, measured=_known(value), baselines=PAST)
    assert found == verdict
    assert detail.startswith("cider_d ")
    assert ("ev_past" in detail) is ("baseline" in gate)


def test_a_detail_shows_as_many_digits_as_it_takes():
    at_least = "cider_d >= 0.45"
    assert _decide(at_least, measured=_known(0.5))[1] == "cider_d 0.5 >= 0.45"
    assert _decide(at_least, measured=_known(0.44999999))[1] == "cider_d 0.44999999 < 0.45"
    _, detail = _decide("cider_d >= baseline - 0.01", measured=_known(0.38), baselines=PAST)
    assert detail == "cider_d 0.38 < 0.39; the baseline is 0.4 (ev_past)"


@pytest.mark.parametrize(
    ("value", "interval", "told"),
    [
        (0.46, (0.44, 0.48), "; the bound is inside its interval"),
        (0.44, (0.42, 0.45), "; the bound is inside its interval"),
        (0.46, (0.45, 0.47), ""),
        (0.44, (0.42, 0.4499), ""),
        (0.46, None, ""),
    ],
)
def test_a_threshold_tells_where_the_interval_lies_on_both_sides(value, interval, told):
    known = ScoreBounds(value, value, PAST.signature, interval)
    verdict, detail = _decide("cider_d >= 0.45", measured=known)
    assert verdict == ("passed" if value >= 0.45 else "failed")
    assert detail == f"cider_d {value} {'>=' if value >= 0.45 else '<'} 0.45{told}"


def test_a_gate_is_open_until_its_score_is_there_or_its_bounds_say_enough():
    gate = "cider_d >= 0.45"
    assert _decide(gate) == (None, None)
    assert _decide(gate, measured=_known(0.40, 0.46)) == (None, None)
    assert _decide(gate, measured=_known(0.40, 0.45)) == (None, None)
    assert _decide(gate, measured=_known(0.45, 0.46))[0] == "passed"
    assert _decide(gate, measured=_known(0.40, 0.449))[0] == "failed"
    assert "between 0.4 and 0.449" in _decide(gate, measured=_known(0.40, 0.449))[1]


def test_what_can_never_be_had_is_undecided_and_what_has_no_equal_is_not_comparable():
    gate = "cider_d >= baseline"
    known = _known(0.5)
    other = BaselineScore("ev_past", 0.4, "cider_d|refs:5|tok:none|v:2")
    assert _decide(gate, lost="no Java", baselines=PAST) == ("undecided", "no Java")
    assert _decide(gate, measured=known, baselines="none yet") == ("not_comparable", "none yet")
    assert _decide(gate, baselines="none yet") == ("not_comparable", "none yet")
    assert _decide(gate, measured=known, baselines=PAST, distrusted="blind")[0] == "undecided"
    verdict, detail = _decide(gate, measured=known, baselines=other)
    assert verdict == "not_comparable"
    assert "tok: ptb and none" in detail
    assert "refs" not in detail
    assert _decide("cider_d >= 0.4", measured=known, baselines="none yet")[0] == "passed"


@pytest.mark.parametrize(
    ("metric", "difference", "p", "verdict"),
    [
        ("cider_d", -0.03, 0.01, "failed"),
        ("cider_d", -0.03, 0.05, "passed"),
        ("cider_d", -0.03, 0.0499, "failed"),
        ("cider_d", 0.03, 0.01, "passed"),
        ("cider_d", 0.0, 1.0, "passed"),
        ("cider_d", -0.03, None, "undecided"),
        ("wmd_distance", 0.1, 0.001, "failed"),  # where less is better, a rise is the drop
        ("wmd_distance", -0.1, 0.001, "passed"),
    ],
)
def test_a_drop_is_one_that_chance_does_not_explain(metric, difference, p, verdict):
    least = 0.017 if metric == "cider_d" else None  # that would be found
    found, detail = _decide(
        f"no_significant_drop({metric})",
        metric=metric,
        measured=_known(0.4 + difference),
        baselines=PAST,
        compared=BaselineDifference(difference, p, least),
    )
    assert found == verdict
    assert detail.startswith(f"{metric}: ")
    assert ("0.017" in detail) is (p is not None and least is not None)


def test_without_a_comparison_only_what_has_not_dropped_is_sure():
    gate = "no_significant_drop(cider_d)"
    assert _decide(gate, measured=_known(0.41), baselines=PAST)[0] == "passed"
    assert _decide(gate, measured=_known(0.41, 0.5), baselines=PAST)[0] == "passed"
    assert _decide(gate, measured=_known(0.39), baselines=PAST)[0] is None
    assert _decide(gate, measured=_known(0.39, 0.5), baselines=PAST)[0] is None
    lost = _decide(gate, measured=_known(0.39), baselines=PAST, compared="it failed")
    assert lost == ("undecided", "cider_d: it failed")
    assert _decide(gate, baselines=PAST) == (None, None)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], None),
        (["passed", "passed"], "passed"),
        (["failed", None], None),
        (["passed", "undecided"], "undecided"),
        (["not_comparable", "undecided", "passed"], "not_comparable"),
        (["undecided", "not_comparable", "failed", "passed"], "failed"),
    ],
)
def test_the_worst_verdict_is_the_whole_s(verdicts, expected):
    assert gates.combine_verdicts(verdicts) == expected
