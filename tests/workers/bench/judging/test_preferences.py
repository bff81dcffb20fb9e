import numpy as np
import pytest
from scipy import stats

from workers.bench.judgements import JudgedPair
from workers.bench.judging import preferences


def _pairs(*judged):
    return [JudgedPair(("x",), "a", "b", preferred, category) for preferred, category in judged]


def _accuracies(pairs, scores, numbers=None):
    numbers = np.arange(len(pairs)) if numbers is None else numbers
    told = preferences.define_figures(pairs, numbers)
    return preferences.make_accuracy_rows(
        told, preferences.measure_agreement(pairs, np.asarray(scores))
    )


def _parts(rows):
    """Without intervals."""
    kept = {"n", "accuracy", "half", "ties", "category", "half_category"}
    return {name: {key: row[key] for key in kept & set(row)} for name, row in rows.items()}


def test_right_is_strictly_higher_and_a_tie_is_wrong_and_beside_it_half():
    pairs = _pairs(("a", "HM"), ("a", "HM"), ("b", "HM"), ("b", "HM"), ("b", "MM"))
    scores = [[2, 1], [1, 2], [1, 2], [1, 1], [0, 0.5]]
    low = {"n": 4, "accuracy": 0.5, "half": 0.625, "ties": 0.25}
    assert _parts(_accuracies(pairs, scores)) == {
        "HM": low,
        "MM": {"n": 1, "accuracy": 1.0, "half": 1.0, "ties": 0.0},
        "all": {"n": 5, "accuracy": 0.6, "half": 0.7, "ties": 0.2},
        "average": {"n": 5, "accuracy": 0.75, "half": 0.8125, "ties": 0.125},
        "worst": {**low, "category": "HM", "half_category": "HM"},
    }


def test_the_worst_category_may_be_another_one_where_ties_count_half():
    pairs = _pairs(*[("a", "x")] * 4, *[("a", "y")] * 4)
    scores = [[1, 1]] * 3 + [[1, 0]] + [[0, 1]] * 2 + [[1, 0]] * 2
    worst = _accuracies(pairs, scores)["worst"]
    assert (worst["category"], worst["accuracy"]) == ("x", 0.25)
    assert (worst["half_category"], worst["half"]) == ("y", 0.5)


@pytest.mark.parametrize(
    ("apart", "scale", "ties"),
    [(0.9e-10, 1, 1), (1.1e-10, 1, 0), (0.9e-8, 100, 1), (1.1e-8, 100, 0), (0.5e-10, 0.1, 0)],
)
def test_scores_tie_that_differ_by_a_ten_thousand_millionth_of_the_largest(apart, scale, ties):
    pairs = _pairs(("a", None), ("a", None))
    found = _accuracies(pairs, [[scale, 0], [apart, 0]])["all"]
    assert found["ties"] == ties / 2
    assert found["accuracy"] == 1 - ties / 2


def test_equal_infinite_scores_tie_and_others_do_not():
    found = _accuracies(_pairs(*[("a", None)] * 3), [[np.inf, np.inf], [np.inf, 1], [0, -np.inf]])
    assert (found["all"]["ties"], found["all"]["accuracy"]) == (1 / 3, 2 / 3)


def test_pairs_without_a_category_count_in_all_alone():
    found = _accuracies(_pairs(("a", "HM"), ("a", None)), [[1, 0], [0, 1]])
    assert found["all"]["accuracy"] == 0.5
    assert found["average"]["accuracy"] == found["HM"]["accuracy"] == 1
    alone = _accuracies(_pairs(("a", None)), [[1, 0]])
    nothing = {"n": 0, "accuracy": None, "half": None, "ties": None}
    assert _parts(alone) == {
        "all": {"n": 1, "accuracy": 1.0, "half": 1.0, "ties": 0.0},
        "average": nothing,
        "worst": {**nothing, "category": None, "half_category": None},
    }


def _draw(rng, many, lines, accuracy):
    """Pairs of images that metrics find hard or easy: their outcomes hang together."""
    hard = stats.norm.ppf(1 - accuracy)
    numbers = np.repeat(np.arange(many), lines)
    own = rng.normal(size=many * lines)
    value = np.sqrt(0.4) * rng.normal(size=many)[numbers] + np.sqrt(0.6) * own
    return np.stack([value, np.full(len(value), hard)], axis=1), numbers


def test_an_interval_is_as_wide_as_a_bootstrap_of_images_has_it():
    scores, numbers = _draw(np.random.default_rng(3), 80, 6, 0.7)
    names = [None, "x", "y"]
    pairs = _pairs(*[("a", names[at % 3]) for at in range(480)])
    found = _accuracies(pairs, scores, numbers)
    right = scores[:, 0] > scores[:, 1]
    kinds = np.arange(480) % 3
    rng = np.random.default_rng(0)
    drawn = {"all": [], "average": []}
    for _ in range(1000):
        times = np.bincount(rng.integers(0, 80, 80), minlength=80)[numbers]
        drawn["all"].append(np.average(right, weights=times))
        parts = [np.average(right, weights=times * (kinds == kind)) for kind in (1, 2)]
        drawn["average"].append(np.mean(parts))
    for name, values in drawn.items():
        low, high = found[name]["interval"]
        assert (high - low) / 2 / stats.t.ppf(0.975, 79) == pytest.approx(np.std(values), rel=0.1)
        assert low < found[name]["accuracy"] < high


def test_a_metric_that_is_always_right_has_an_interval_and_few_images_have_none():
    pairs = _pairs(*[("a", None)] * 30)
    scores = np.tile([1.0, 0.0], (30, 1))
    low, high = _accuracies(pairs, scores)["all"]["interval"]
    assert high == 1
    quantile = stats.t.ppf(0.975, 29) ** 2
    assert low == pytest.approx(30 / (30 + quantile))  # Wilson's for 30 of 30
    assert _accuracies(pairs, scores, np.arange(30) % 9)["all"]["interval"] is None
