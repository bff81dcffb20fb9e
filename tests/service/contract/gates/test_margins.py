"""Gates of a margin. Oracles: the definition, on the ends of intervals; Holm's procedure on p
values, as published.
"""

from dataclasses import fields
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.contract.gates import gates
from service.contract.gates.evidence import (
    BaselineDifference,
    BaselineScore,
    ExpectedDifference,
    GateEvidence,
    ScoreBounds,
)

PAST = BaselineScore("ev_past", 0.40, "a|v:1")
NORMAL = NormalDist()
METRICS = ("cider_d", "meteor", "rouge_l", "bleu_4", "wmd_distance")


def _compare(difference, low, high, images=1000):
    return BaselineDifference(difference, 0.5, 0.01, (low, high), images)


def _decide(texts, compared, **others):
    names = {name for text in texts for name in gates.parse_gate(text).metrics}
    evidence = {field.name: {} for field in fields(GateEvidence)}
    evidence["measured"] = {name: ScoreBounds(0.4, 0.4, "a|v:1") for name in names}
    evidence["baselines"] = dict.fromkeys(names, PAST)
    given = GateEvidence(**{**evidence, "compared": compared, **others})
    return gates.decide_gates([gates.parse_gate(text) for text in texts], given)


@pytest.mark.parametrize(
    ("gate", "difference", "verdict"),
    [
        ("not_worse(cider_d, 0.01)", (0.002, -0.0099, 0.014), "passed"),
        ("not_worse(cider_d, 0.01)", (0.002, -0.01, 0.014), "undecided"),
        ("not_worse(cider_d, 0.01)", (-0.03, -0.05, -0.0101), "failed"),
        ("not_worse(cider_d, 0.01)", (-0.03, -0.05, -0.01), "undecided"),
        ("not_worse(cider_d, 2 %)", (0.0, -0.0079, 0.0079), "passed"),  # .008 of .4
        ("not_worse(cider_d, 2 %)", (0.0, -0.0081, 0.0081), "undecided"),
        ("not_worse(wmd_distance, 0.01)", (-0.002, -0.014, 0.0099), "passed"),  # less is better
        ("not_worse(wmd_distance, 0.01)", (0.03, 0.0101, 0.05), "failed"),
        ("better(cider_d)", (0.02, 0.0001, 0.04), "passed"),
        ("better(cider_d)", (0.02, -0.0001, 0.04), "undecided"),
        ("better(cider_d)", (-0.02, -0.04, -0.0001), "failed"),
        ("better(wmd_distance)", (-0.02, -0.04, -0.0001), "passed"),
        ("better(cider_d)", (0.0, 0.0, 0.0), "undecided"),  # the same captions
        ("not_worse(cider_d, 0.01)", (0.0, 0.0, 0.0), "passed"),
    ],
)
def test_one_metric_is_decided_by_its_interval(gate, difference, verdict):
    (name,) = gates.parse_gate(gate).metrics
    ((found, detail),) = _decide([gate], {name: _compare(*difference)})
    assert found == verdict
    assert detail.startswith(f"{name}: {difference[0]:+.4g} on 0.4 (ev_past)")
    assert "Holm" not in detail


# 1.96 s is .02: of 1,000 images, ((.02 / (.006 + .01))^2 - 1) * 1,000 more are needed.
ADVICE = [
    ("not_worse(cider_d, 0.01)", 0.006, "about 560 more images, or a margin of 0.014"),
    ("not_worse(cider_d, 1 %)", 0.006, "about 3000 more images, or a margin of 3.5 %"),
    ("not_worse(cider_d, 0.01)", -0.014, "cannot be told, or a margin of 0.034"),
    ("not_worse(cider_d, 0.01)", -0.026, "about 560 more images, or a margin of 0.046"),
    ("better(cider_d)", 0.016, "needs about 560 more images"),
]


@pytest.mark.parametrize(("gate", "difference", "said"), ADVICE)
def test_an_undecided_gate_says_how_much_would_decide_it(gate, difference, said):
    compared = _compare(difference, difference - 0.02, difference + 0.02)
    ((verdict, detail),) = _decide([gate], {"cider_d": compared})
    assert verdict == "undecided"
    assert detail.endswith(said)


def test_without_the_number_of_images_only_the_margin_is_told():
    unknown = BaselineDifference(0.006, 0.5, 0.01, (-0.014, 0.026))
    ((_, detail),) = _decide(["not_worse(cider_d, 0.01)"], {"cider_d": unknown})
    assert detail.endswith("how many images it needs cannot be told, or a margin of 0.014")


def reject_by_holm(p_values, level):
    """Holm (1979): step down from the smallest p, and stop at the first that is not below."""
    ordered = sorted(range(len(p_values)), key=lambda at: p_values[at])
    rejected = set()
    for rank, at in enumerate(ordered):
        if not p_values[at] < level / (len(p_values) - rank):
            break
        rejected.add(at)
    return rejected


errors = st.floats(-6, 6).map(lambda value: round(value, 3))


@given(st.lists(errors, min_size=2, max_size=5), st.booleans())
def test_several_metrics_are_corrected_as_by_holm_in_one_gate_or_in_several(found, are_apart):
    """The difference and the margin, .01, are so many standard errors of .002 together."""
    names = METRICS[: len(found)]
    compared = {}
    for name, z in zip(names, found, strict=True):
        value, half = z * 0.002 - 0.01, NORMAL.inv_cdf(0.975) * 0.002
        ends = (value, value - half, value + half)
        less_is_better = name == "wmd_distance"
        compared[name] = _compare(*((-ends[0], -ends[2], -ends[1]) if less_is_better else ends))
    rises = [1 - NORMAL.cdf(z) for z in found]
    falls = [NORMAL.cdf(z) for z in found]
    passed, failed = reject_by_holm(rises, 0.025), reject_by_holm(falls, 0.025)
    expected = [
        "passed" if at in passed else "failed" if at in failed else "undecided"
        for at in range(len(found))
    ]
    if are_apart:
        decided = _decide([f"not_worse({name}, 0.01)" for name in names], compared)
        assert [verdict for verdict, _ in decided] == expected
        assert all(f"one of {len(found)} differences" in detail for _, detail in decided)
    else:
        ((verdict, detail),) = _decide([f"not_worse({', '.join(names)}, 0.01)"], compared)
        assert verdict == gates.combine_verdicts(expected)
        assert detail.count("(Holm)") == len(found)


def test_a_test_that_is_not_there_yet_keeps_the_others_open_unless_they_are_sure():
    gate = "not_worse(cider_d, meteor, 0.01)"
    far, near = _compare(0.0, -0.001, 0.001), _compare(0.0, -0.0099, 0.0099)
    assert _decide([gate], {"cider_d": near})[0] == (None, None)
    ((verdict, detail),) = _decide([gate], {"cider_d": far})
    assert (verdict, detail[:8]) == (None, "cider_d:")
    assert _decide([gate], {"cider_d": far, "meteor": near})[0][0] == "passed"
    assert _decide([gate], {"cider_d": near, "meteor": near})[0][0] == "undecided"
    assert _decide([gate], {"cider_d": near, "meteor": "it failed"})[0][0] == "undecided"


def _expect(low, high, error=0.001):
    return ExpectedDifference(low, high, error, 256, 1000)


def test_expected_differences_are_corrected_as_the_tests_that_they_foretell():
    """Of two, the farther one needs 2.24 standard errors and the other one 1.96."""
    gate = "not_worse(cider_d, meteor, 0.01)"
    nearer, farther = _expect(-0.008, 0.02), _expect(-0.0077, 0.02)  # 2 and 2.3 errors
    ((verdict, detail),) = _decide([gate], {"cider_d": nearer, "meteor": farther})
    assert verdict == "passed"
    assert "cider_d: between -0.008 and +0.02 expected on 0.4" in detail
    assert _decide([gate], {"cider_d": nearer, "meteor": nearer}) == [(None, None)]
    assert _decide([gate], {"cider_d": nearer}) == [(None, None)]
    seen = _compare(0.0, -0.02, 0.02)  # undecided alone, but the other may make it easier
    assert _decide([gate], {"cider_d": nearer, "meteor": seen}) == [(None, None)]
    lower = {"wmd_distance": _expect(-0.02, 0.008)}
    assert _decide(["not_worse(wmd_distance, 0.01)"], lower)[0][0] == "passed"
    lower = {"wmd_distance": _expect(0.0121, 0.04)}
    assert _decide(["not_worse(wmd_distance, 0.01)"], lower)[0][0] == "failed"


@pytest.mark.parametrize("low", [-1e-9, 0.0])
def test_the_same_captions_are_not_expected_to_be_better(low):
    assert _decide(["better(cider_d)"], {"cider_d": _expect(low, -low, 0.0)}) == [(None, None)]


def test_a_drop_waits_for_its_comparison():
    gate = "no_significant_drop(cider_d)"
    bounds = {"measured": {"cider_d": ScoreBounds(0.3, 0.5, "a|v:1")}}
    assert _decide([gate], {"cider_d": _expect(-0.5, -0.4)}, **bounds) == [(None, None)]


def test_what_cannot_be_compared_is_no_verdict():
    gate, near = "not_worse(cider_d, 0.01)", {"cider_d": _compare(0.0, -0.001, 0.001)}
    lost = {"measured": {}, "lost": {"cider_d": "no Java"}}
    assert _decide([gate], near, **lost) == [("undecided", "cider_d: no Java")]
    none = {"baselines": {"cider_d": "none yet"}}
    assert _decide([gate], near, **none) == [("not_comparable", "cider_d: none yet")]
    few = {"cider_d": BaselineDifference(0.1, None, None, None, 1)}
    ((verdict, detail),) = _decide([gate], few)
    assert verdict == "undecided"
    assert "cannot be tested" in detail
    assert _decide([gate], {"cider_d": "the scores are gone"})[0][0] == "undecided"
