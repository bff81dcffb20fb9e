"""Verdicts of an evaluation's gates, from its tasks' rows and its kept request alone."""

import json

import pytest

from prescore.models.metrics import MetricHealth
from service.contract.results import StoredEvaluation
from service.runs import verdicts

SIGNATURES = {"cider_d": "cider_d|refs:5|v:2", "perplexity": "pregen|columns|fp32|v:1"}
PAST = {
    "evaluation": "ev_past",
    "value": 0.40,
    "interval": [0.38, 0.42],
    "signature": SIGNATURES["cider_d"],
    "result": "sha256:0",
    "comparison": "comparison_cider_d_1",
}


def _row(name, status="done", summary=None, error=None):
    return {
        "name": name,
        "kind": "comparison" if name.startswith("comparison") else name,
        "status": status,
        "summary": None if summary is None else json.dumps(summary),
        "error": None if error is None else json.dumps({"code": "x", "detail": error}),
    }


def _scored(value, name="cider_d"):
    summary = {"scores": {name: value}, "signature": {name: SIGNATURES[name]}}
    return _row(name, summary=summary | {"intervals": {name: [0.35, 0.45]}})


def _compared(**found):
    unknown = dict.fromkeys(("difference", "interval", "p", "minimum_detectable"))
    summary = {"comparison": {"cider_d": {**unknown, "a": 0.37, "b": 0.4, **found}}}
    return _row("comparison_cider_d_1", summary=summary)


def _of(rows, *gates, **request):
    given = {"gates": list(gates), "baselines": {}, "trust": [], "health": None}
    return verdicts.decide_gates(rows, StoredEvaluation.model_validate(given | request))


def test_without_gates_there_is_no_verdict():
    assert _of([_scored(0.5)]) == ([], None)
    before = StoredEvaluation.model_validate_json('{"checkpoint": null}')  # as they were kept
    assert verdicts.decide_gates([], before) == ([], None)


def test_gates_are_open_while_tasks_are_and_so_is_the_verdict():
    rows = [_scored(0.5), _row("meteor", "running")]
    found, verdict = _of(rows, "cider_d >= 0.45", "meteor > 0")
    assert [gate.verdict for gate in found] == ["passed", None]
    assert verdict is None


def test_an_alias_is_the_metric_that_it_stands_for():
    summary = {"scores": {"geomean_join_pplx_none": 15.5}, "signature": "pregen|columns|v:1"}
    for name in ("perplexity", "geomean_join_pplx_none"):
        found, verdict = _of([_row("pregen", summary=summary)], f"{name} <= 15.5")
        assert verdict == "passed"
        assert found[0].scores[name].value == 15.5
        assert found[0].detail.startswith(name)


@pytest.mark.parametrize(
    ("rows", "detail"),
    [
        ([_row("cider_d", "failed", error="Java died")], "the task cider_d is failed: Java died"),
        ([_row("cider_d", "unavailable", error="no jar")], "is unavailable: no jar"),
        ([_row("cider_d", "canceled")], "the task cider_d is canceled"),
        ([_scored(float("inf"))], "infinite or undefined"),
        ([_row("cider_d", summary={"scores": {}, "signature": {}})], "it has no value"),
        ([], "it is not computed"),
    ],
)
def test_a_score_that_will_never_be_there_leaves_its_gate_undecided(rows, detail):
    found, verdict = _of(rows, "cider_d >= 0.45")
    assert verdict == "undecided"
    assert detail in found[0].detail


def test_the_baseline_is_what_was_kept_at_submission():
    rows = [_scored(0.395)]
    found, verdict = _of(rows, "cider_d >= baseline - 0.01", baselines={"cider_d": PAST})
    assert verdict == "passed"
    shown = found[0].scores["cider_d"]
    assert (shown.value, shown.baseline, shown.evaluation) == (0.395, 0.40, "ev_past")
    assert shown.interval == (0.35, 0.45)
    assert shown.difference == pytest.approx(-0.005)
    assert (shown.p, shown.minimum_detectable, shown.margin) == (None, None, 0.01)
    past = {"cider_d": {**PAST, "signature": "cider_d|refs:4|v:2"}}
    found, verdict = _of(rows, "cider_d >= baseline", baselines=past)
    assert (verdict, found[0].scores["cider_d"].difference) == ("not_comparable", None)
    none = {"cider_d": {"none_because": "nobody has been here"}}
    found, verdict = _of(rows, "cider_d >= baseline - 0.01", baselines=none)
    assert (verdict, found[0].detail) == ("not_comparable", "nobody has been here")
    assert found[0].scores["cider_d"].margin is None
    huge = {"cider_d": {**PAST, "value": 1e300}}
    found, _ = _of(rows, f"cider_d >= {'9e99 * ' * 2}baseline", baselines=huge)
    assert found[0].scores["cider_d"].margin is None


def test_a_drop_is_judged_by_its_comparison():
    known = {"difference": -0.03, "p": 0.004, "minimum_detectable": 0.02}
    rows = [_scored(0.37), _compared(**known)]
    found, verdict = _of(rows, "no_significant_drop(cider_d)", baselines={"cider_d": PAST})
    assert verdict == "failed"
    shown = found[0].scores["cider_d"]
    assert (shown.p, shown.minimum_detectable) == (0.004, 0.02)
    rows = [_scored(0.37), _row("comparison_cider_d_1", "running")]
    assert _of(rows, "no_significant_drop(cider_d)", baselines={"cider_d": PAST})[1] is None


def _estimated(low, high, error):
    said = {"value": 0.4, "interval": [0.39, 0.41], "images": 256, "of": 1000}
    bounds = {"low": low, "high": high, "error": error}
    summary = {"estimate": {"cider_d": said}, "signature": SIGNATURES}
    row = _row("estimate", "running", summary | {"differences": {"cider_d": bounds}})
    return row | {"kind": "look"}


@pytest.mark.parametrize("status", ["blocked", "canceled"])
@pytest.mark.parametrize(
    ("bounds", "verdict"),
    [
        ((-0.005, 0.02, 0.002), "passed"),  # .005 above the margin, 1.96 errors are .0039
        ((-0.005, 0.02, 0.003), None),
        ((-0.03, -0.015, 0.002), "failed"),
        ((-0.03, -0.015, 0.003), None),
        ((-1e-9, 1e-9, 0.0), "passed"),
    ],
)
def test_a_margin_is_decided_by_the_difference_that_all_images_will_have(status, bounds, verdict):
    rows = [_row("cider_d", status), _estimated(*bounds), _row("comparison_cider_d_1", status)]
    found, decided = _of(rows, "not_worse(cider_d, 0.01)", baselines={"cider_d": PAST})
    assert decided == verdict
    if verdict:
        assert "from 256 of 1000 images" in found[0].detail
    assert found[0].scores["cider_d"].difference_interval is None


@pytest.mark.parametrize("status", ["failed", "done"])
def test_a_comparison_that_has_ended_is_not_expected_any_more(status):
    compared = _compared(difference=-0.03, interval=[-0.04, -0.02], p=0.001)
    row = compared if status == "done" else _row(compared["name"], status, error="killed")
    rows = [_scored(0.37), _estimated(-0.005, 0.02, 0.001), row]
    verdict = _of(rows, "not_worse(cider_d, 0.01)", baselines={"cider_d": PAST})[1]
    assert verdict == {"failed": "undecided", "done": "failed"}[status]


@pytest.mark.parametrize(
    ("row", "past", "detail"),
    [
        (_row("comparison_cider_d_1", "failed", error="killed"), PAST, "is failed: killed"),
        (_compared(difference=None, p=None, minimum_detectable=None), PAST, "infinite"),
        (_compared(difference=-0.03, p=None, minimum_detectable=None), PAST, "cannot be tested"),
        (_scored(0.37), {**PAST, "comparison": None}, "no longer stored"),
    ],
)
def test_a_comparison_that_says_nothing_leaves_its_gate_undecided(row, past, detail):
    gate = "no_significant_drop(cider_d)"
    found, verdict = _of([_scored(0.37), row], gate, baselines={"cider_d": past})
    assert verdict == "undecided"
    assert detail in found[0].detail


def _health(constant, human, metric="cider_d"):
    unknown = dict.fromkeys(MetricHealth.model_fields)
    return {metric: {**unknown, "constant": constant, "human": human}}


@pytest.mark.parametrize(
    ("health", "trust", "verdict"),
    [
        (_health(0.3, 0.2), [], "undecided"),
        (_health(0.3, 0.2), ["cider_d"], "passed"),
        (_health(0.3, 0.2), ["meteor"], "undecided"),
        (_health(0.2, 0.2), [], "passed"),
        (_health(0.1, 0.2), [], "passed"),
        (_health(None, 0.2), [], "passed"),
        (_health(1.0, 0.1, "meteor"), [], "passed"),
        (None, [], "passed"),
    ],
)
def test_a_metric_that_prefers_one_sentence_to_people_cannot_gate_unless_trusted(
    health, trust, verdict
):
    found, overall = _of([_scored(0.5)], "cider_d >= 0.45", health=health, trust=trust)
    assert overall == verdict
    assert ("0.3" in found[0].detail) is (verdict == "undecided")


def test_where_less_is_better_the_sentence_must_not_have_less():
    health = _health(0.9, 1.0, "wmd_distance")
    signature = {"wmd_distance": "wmd_distance|v:1"}
    rows = [_row("wmd", summary={"scores": {"wmd_distance": 0.8}, "signature": signature})]
    assert _of(rows, "wmd_distance <= 1", health=health)[1] == "undecided"
    health["wmd_distance"]["constant"] = 1.1
    assert _of(rows, "wmd_distance <= 1", health=health)[1] == "passed"


def test_trust_in_a_group_is_trust_in_its_metrics():
    health = _health(0.3, 0.2, "bleu_4")
    summary = {"scores": {"bleu_4": 0.4}, "signature": {"bleu_4": "bleu_4|v:1"}}
    rows = [_row("bleu", summary=summary)]
    assert _of(rows, "bleu_4 > 0", health=health)[1] == "undecided"
    assert _of(rows, "bleu_4 > 0", health=health, trust=["bleu"])[1] == "passed"
