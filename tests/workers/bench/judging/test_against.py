"""Metric against metric, beside scipy's paired test and a bootstrap."""

import numpy as np
import pytest
from scipy import stats

from workers.bench.judgements import JudgedPair
from workers.bench.judging import correlations, preferences, verdict
from workers.bench.judging.intervals import ObservationGroups


def _three(seed=0, many=60, lines=5):
    """Ratings, and metrics that follow them more and less closely; `far` is a distance."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(many), lines)
    ratings = rng.normal(size=many)[groups] + rng.normal(size=many * lines)
    noise = rng.normal(size=(3, many * lines)) + rng.normal(size=(3, many))[:, groups]
    scores = {"good": ratings + noise[0], "bad": ratings + 3 * noise[1]}
    return ratings, scores | {"far": -ratings - 2 * noise[2]}, groups


SIGNS = {"good": 1, "bad": 1, "far": -1}


def _rated(ratings, scores, groups, chosen=None):
    grouped = ObservationGroups.of(groups)
    measured = {
        name: correlations.measure_correlations(values, ratings, grouped)
        for name, values in scores.items()
    }
    return verdict.compare_correlations(measured, SIGNS, grouped, chosen)


def test_a_distance_agrees_where_it_falls():
    ratings, scores, groups = _three()
    found = _rated(ratings, scores, groups, "far")["pearson"]
    assert found["against"] == "far"
    known = {name: np.corrcoef(values, ratings)[0, 1] for name, values in scores.items()}
    assert found["metrics"]["bad"]["difference"] == pytest.approx(known["bad"] + known["far"])


def test_a_difference_of_correlations_is_as_sure_as_a_bootstrap_of_images_says():
    ratings, scores, groups = _three(4)
    rng = np.random.default_rng(1)
    places = np.arange(300).reshape(60, 5)
    drawn = []
    for _ in range(400):
        at = places[rng.integers(0, 60, 60)].ravel()
        bad, good = (np.corrcoef(scores[each][at], ratings[at])[0, 1] for each in ("bad", "good"))
        drawn.append(bad - good)
    found = _rated(ratings, scores, groups)["pearson"]
    assert found["against"] == "good"  # the best of them
    low, high = found["metrics"]["bad"]["interval"]
    error = (high - low) / 2 / stats.t.ppf(0.975, 59)
    assert error == pytest.approx(np.std(drawn), rel=0.2)


def _agreed(right, half=None):
    return {
        "accuracy": right,
        "half": right if half is None else half,
        "ties": np.zeros(len(right)),
    }


def test_a_difference_of_accuracies_is_students_paired_test_where_lines_stand_alone():
    rng = np.random.default_rng(0)
    one, other = (rng.integers(0, 2, 50).astype(float) for _ in range(2))
    other[:15] = 1
    told = preferences.define_figures([JudgedPair(("x",), "a", "b", "a")] * 50, np.arange(50))
    agreed = {"one": _agreed(one), "other": _agreed(other)}
    found = verdict.compare_preferences(told, agreed, None)["all"]["accuracy"]
    assert found["against"] == "other"
    expected = stats.ttest_rel(one, other)
    row = found["metrics"]["one"]
    assert row["p"] == pytest.approx(expected.pvalue, rel=1e-9)
    assert row["interval"] == pytest.approx(tuple(expected.confidence_interval()), rel=1e-9)


def test_which_metric_is_best_may_hang_on_what_a_tie_counts():
    told = preferences.define_figures([JudgedPair(("x",), "a", "b", "a")] * 20, np.arange(20))
    ties = np.repeat([0.0, 1.0], 10)
    agreed = {
        "ties": _agreed(ties, (1 + ties) / 2),
        "sure": _agreed(np.repeat([0.0, 1.0], [8, 12])),
    }
    found = verdict.compare_preferences(told, agreed, None)["all"]
    assert (found["accuracy"]["against"], found["half"]["against"]) == ("sure", "ties")


def test_equal_metrics_differ_by_nothing_and_undefined_ones_not_at_all():
    ratings, scores, groups = _three()
    both = {"good": scores["good"], "bad": scores["good"].copy()}
    row = _rated(ratings, both, groups)["kendall_b"]["metrics"]["bad"]
    assert row == {"difference": 0, "interval": (0, 0), "p": 1}
    flat = _rated(ratings, {"good": scores["good"], "bad": np.zeros(300)}, groups, "bad")
    assert flat["pearson"] == {"against": "bad", "metrics": {}}
