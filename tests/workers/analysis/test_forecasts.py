"""What is forecast, how wide, and when nothing is."""

import json
import re

import numpy as np
import pytest

from helpers.histories import HITS, PREFIX, evaluation, pregen, training
from workers.analysis.forecasts import forecast_metrics


def _cider(history, one, metric="cider_d"):
    found = forecast_metrics(history, [metric], pregen(one))[metric]
    json.dumps(found, allow_nan=False)
    return found


def _new(hits=0.35, **more):
    return evaluation("new", hits, {}, **more)


def test_training_runs_that_agree_give_a_forecast_and_its_card():
    found = _cider(_drawn(4, 6), _new())
    assert found["value"] == pytest.approx(0.35, abs=0.02)
    low, high = found["interval"]
    assert low < found["value"] < high
    assert high - low < 0.1
    assert found["none_because"] is None
    card = found["card"]
    assert (card["evaluations"], card["runs"]) == (24, 4)
    assert (card["predictor"], card["coverage"]) == (HITS, 1.0)
    assert card["rank_agreement"] > 0.9
    assert card["rank_agreement_within"] > 0.9
    assert card["error"] < 0.2 * card["error_without"]


OTHERS = [pytest.param(*at, marks=pytest.mark.slow) for at in ((30, 1), (4, 2), (6, 8))]


@pytest.mark.long
@pytest.mark.parametrize(("runs", "each"), [(8, 1), (12, 1), (3, 4), *OTHERS])
def test_scores_that_have_nothing_to_do_with_pregen_scores_are_not_forecast(runs, each):
    rng = np.random.default_rng(1)
    given = 0
    for _ in range(60):
        history = [
            evaluation(
                run,
                rng.uniform(0.2, 0.5),
                {"cider_d": rng.uniform(0.2, 0.5)},
                perplexity=rng.uniform(5, 20),
                prefix=rng.uniform(0.1, 0.2),
            )
            for run in range(runs)
            for _ in range(each)
        ]
        given += _cider(history, _new(perplexity=10.0, prefix=0.15))["value"] is not None
    assert given <= 1


def _drawn(runs, each, slope=1.0):
    return training(np.random.default_rng(0), runs, each, run_sd=0.005, slope=slope)


APART = [  # runs that do not overlap
    evaluation(run, run + at / 100, {"cider_d": run}, perplexity=9 - run - at / 100, prefix=run)
    for run in range(3)
    for at in range(5)
]


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ([], "0 finished evaluation.*at least 8"),
        (_drawn(4, 2)[:7], "7 finished evaluation.*at least 8"),
        (_drawn(1, 20), "one training run"),
        (APART, "differ too much"),
        (_drawn(4, 6, slope=-1.0), "^24 evaluations of 4 training runs are too little evidence"),
        (
            [evaluation(at % 4, 0.3, {"cider_d": 0.5}) for at in range(16)],
            "^16 evaluations of 4 training runs are too little evidence",
        ),
    ],
)
def test_what_is_no_evidence_says_why(history, said):
    found = _cider(history, _new())
    assert re.search(said, found["none_because"])
    assert (found["card"] is None) == (not said.startswith("^"))


def test_architectures_in_order_are_no_evidence_where_runs_are_not():
    """As the tuned captioners of a published dataset: one evaluation a run."""
    rng = np.random.default_rng(2)
    history = [
        evaluation(
            f"{architecture} {run}",
            0.3 + at / 20 + rng.normal(scale=0.005),
            {"cider_d": 0.3 + at / 20 + rng.normal(scale=0.005)},
            architecture,
        )
        for at, architecture in enumerate(("init", "pre", "par", "merge"))
        for run in range(3)
    ]
    found = _cider(history, _new())
    assert found["value"] is None
    assert "too little evidence" in found["none_because"]
    assert found["card"]["rank_agreement"] > 0.8
    assert found["card"]["error"] < 0.5 * found["card"]["error_without"]


def test_a_metric_that_few_have_is_not_forecast_and_others_are():
    history = _drawn(4, 6)
    for one in history[:7]:
        one.scores["spice"] = one.scores["cider_d"] / 4
    found = forecast_metrics(history, ["cider_d", "spice", "wmd"], pregen(_new()))
    assert found["cider_d"]["value"] is not None
    assert found["spice"]["none_because"].startswith("this split has 7 finished")
    assert found["wmd"]["none_because"].startswith("this split has 0 finished")


def _half(found):
    low, high = found["interval"]
    return (high - low) / 2


def _with_one_luckier_run(runs, each):
    history = _drawn(runs, each)
    for one in history:
        if one.run == "0":
            one.scores["cider_d"] += 0.05
    return history


def test_beyond_the_better_end_an_interval_widens_and_says_how_far_it_goes():
    history = _drawn(8, 8)
    end = _cider(history, _new())["card"]["range"][1]
    assert _cider(history, _new(end))["beyond"] is None
    widths = [_half(_cider(history, _new(end)))]
    for further in (0.01, 0.03, 0.05):
        found = _cider(history, _new(end + further))
        assert found["beyond"] == pytest.approx(further)
        assert found["value"] == pytest.approx(end + further, abs=0.02)
        widths.append(_half(found))
    assert widths == sorted(widths)
    assert widths[0] < widths[-1] <= 2 * widths[0]


def test_a_perplexity_is_beyond_where_it_is_below():
    history = _drawn(8, 8)
    for one in history:
        one.scores["perplexity"], one.scores[HITS] = 1 / one.scores[HITS], 0.1
    best = _cider(history, _new(0.1, perplexity=3.0))["card"]["range"][0]
    found = _cider(history, _new(0.1, perplexity=best - 0.05))
    assert found["card"]["predictor"] == "perplexity"
    assert found["beyond"] == pytest.approx(0.05)
    assert found["value"] == pytest.approx(1 / (best - 0.05), abs=0.02)


@pytest.mark.parametrize(
    ("history", "hits", "said"),
    [
        (_drawn(8, 8), 0.75, "too few evaluations tell how wrong"),
        (_drawn(2, 8), 0.6, "too few evaluations tell how wrong"),
        (_drawn(8, 8), 0.62, "wide, within it"),
        (_with_one_luckier_run(6, 12), 0.5, "% of the intervals hold"),
    ],
)
def test_too_far_beyond_the_better_end_there_is_silence(history, hits, said):
    found = _cider(history, _new(hits))
    assert (found["value"], found["beyond"]) == (None, None)
    assert said in found["none_because"].split("; so far beyond, ")[1]


@pytest.mark.parametrize(("hits", "side"), [(0.05, "below"), (0.8, "above")])
def test_outside_the_range_that_two_runs_share_it_says_by_how_much(hits, side):
    history = _drawn(4, 6)
    history.append(evaluation("far", 0.9, {"cider_d": 0.9}))  # one alone widens nothing
    found = _cider(history, _new(hits))
    assert found["value"] is None
    low, high = found["card"]["range"]
    away = low - hits if side == "below" else hits - high
    assert high < 0.55
    told = re.search(rf", ([0-9.]+) {side} the ", found["none_because"])
    assert float(told[1]) == pytest.approx(away, rel=0.01)


def test_the_predictor_that_does_best_is_chosen():
    rng = np.random.default_rng(0)
    history = []
    for one in training(rng, 4, 6, run_sd=0.005):
        value = one.scores["cider_d"]
        history.append(
            evaluation(one.run, rng.uniform(0.2, 0.5), {"cider_d": value}, perplexity=1 / value)
        )
    found = _cider(history, _new(0.3, perplexity=1 / 0.4))
    assert (found["card"]["predictor"], found["card"]["fit"]) == ("perplexity", "line")
    assert found["value"] == pytest.approx(0.4, abs=1e-6)


def test_a_curve_is_followed_where_a_line_is_wrong():
    rng = np.random.default_rng(0)
    history = [
        evaluation(run, hits, {"cider_d": float(1 / (1 + np.exp(-60 * (hits - 0.35))))})
        for run in range(4)
        for hits in rng.uniform(0.2, 0.5, 8)
    ]
    found = _cider(history, _new(0.46))
    assert found["card"]["fit"] == "monotone"
    assert found["value"] > 0.98


def test_a_metric_that_is_better_when_lower_is_the_mirror_of_one_that_is_not():
    history = _drawn(4, 6)
    for one in history:
        one.scores["wmd_distance"] = 1 - one.scores["cider_d"]
    found = forecast_metrics(history, ["cider_d", "wmd_distance"], pregen(_new()))
    up, down = found["cider_d"], found["wmd_distance"]
    assert down["value"] == pytest.approx(1 - up["value"])
    assert down["interval"] == pytest.approx([1 - at for at in reversed(up["interval"])])
    assert down["card"]["rank_agreement"] == pytest.approx(up["card"]["rank_agreement"])


def test_what_is_neither_good_nor_bad_is_forecast_the_way_it_goes():
    history = _drawn(4, 6)
    for one in history:
        one.scores["caption_length"] = 10 - 5 * one.scores["cider_d"]
    found = forecast_metrics(history, ["caption_length"], pregen(_new()))["caption_length"]
    assert found["value"] == pytest.approx(10 - 5 * 0.35, abs=0.1)


def test_an_interval_stays_within_the_metrics_range():
    history = training(np.random.default_rng(0), 2, 8, run_sd=0.02, slope=3.0)
    for one in history:
        one.scores["bleu_1"] = one.scores["cider_d"] - 0.65
        one.scores["rouge_l"] = one.scores["cider_d"] - 0.25
    low = forecast_metrics(history, ["bleu_1"], pregen(_new(0.23)))["bleu_1"]
    high = forecast_metrics(history, ["rouge_l"], pregen(_new(0.4)))["rouge_l"]
    assert low["interval"][0] == 0.0 < low["interval"][1]
    assert high["interval"][0] < 1.0 == high["interval"][1]


def test_infinite_perplexities_are_a_place_like_others():
    """Of an untrained captioner, perhaps: shown as null, named as infinite by the task."""
    history = training(np.random.default_rng(0), 4, 6, run_sd=0.0, noise=0.0)
    for one in history:
        one.scores["perplexity"] = 1 / one.scores[HITS]
        one.scores[HITS] = one.scores[PREFIX] = 0.1
    for run in range(4):
        infinite = evaluation(run, 0.1, {"cider_d": 0.0})
        infinite.scores["perplexity"] = None
        history.append(infinite)
    one = _new(0.1)
    one.scores["perplexity"] = float("inf")
    found = _cider(history, one)
    assert found["value"] == pytest.approx(0, abs=0.05)
    assert found["card"]["range"][1] is None
    del history[-4:]
    assert "is inf" in _cider(history, one)["none_because"]


def test_the_same_history_says_the_same_in_any_order():
    history = _drawn(4, 6)
    first, again = _cider(history, _new()), _cider(history[::-1], _new())
    assert first["value"] == pytest.approx(again["value"])
    assert first["interval"] == pytest.approx(again["interval"])
