"""Correlations by their definitions, pair by pair; intervals by derivatives, and beside those that
leave each image out.
"""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from workers.bench.judging import correlations
from workers.bench.judging.correlations import (
    RankedValues,
    compute_correlation_influences,
    count_net_agreements,
)


def _ranks(values, weights):
    """Weighted mid-ranks as shares."""
    above = (values[:, None] > values) + 0.5 * (values[:, None] == values)
    return above @ weights / weights.sum()


def _pearson(x, y, weights):
    dx, dy = (side - np.average(side, weights=weights) for side in (x, y))
    return (weights * dx * dy).sum() / np.sqrt((weights * dx**2).sum() * (weights * dy**2).sum())


def _by_definition(x, y, weights=None):
    """Of observations that count as often as their weights say."""
    weights = np.ones(len(x)) if weights is None else weights
    signs = [np.sign(side[:, None] - side) for side in (x, y)]
    both = weights[:, None] * weights
    net = (both * signs[0] * signs[1]).sum()
    differ = [(both * np.abs(sign)).sum() for sign in signs]
    levels = min(len(np.unique(x)), len(np.unique(y)))
    return {
        "pearson": _pearson(x, y, weights),
        "spearman": _pearson(_ranks(x, weights), _ranks(y, weights), weights),
        "kendall_b": net / np.sqrt(differ[0] * differ[1]),
        "kendall_c": net / weights.sum() ** 2 * levels / (levels - 1),
    }


def _made_up(lines, seed, levels=4):
    """Scores with many zeros, three ratings a line."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=lines)
    scores = np.maximum(0, quality + rng.normal(size=lines))
    ratings = np.round(quality[:, None] + rng.normal(size=(lines, 3)) / 2).clip(-1, levels - 2)
    return np.repeat(scores, 3), ratings.ravel(), np.repeat(np.arange(lines), 3)


def test_every_correlation_is_its_definition():
    scores, ratings, lines = _made_up(60, 0)
    found = correlations.correlate_ratings(scores, ratings, lines)
    expected = _by_definition(scores, ratings)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert found["reason"] is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=40))
def test_net_agreements_are_counted_as_one_by_one(pairs):
    x, y = np.array(pairs, np.float64).T
    expected = (np.sign(x[:, None] - x) * np.sign(y[:, None] - y)).sum(axis=1)
    for one, other in ((x, y), (y, x)):
        found = count_net_agreements(RankedValues.of(one), RankedValues.of(other))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("levels", [2, 4, 40])
def test_influences_are_the_derivatives_by_each_observations_weight(levels):
    scores, ratings, _ = _made_up(25, levels, levels)
    found = compute_correlation_influences(scores, ratings)
    step = 1e-6
    for place in (0, 7, 31, 74):
        weights = np.ones(len(scores))
        weights[place] += step
        up = _by_definition(scores, ratings, weights)
        weights[place] -= 2 * step
        down = _by_definition(scores, ratings, weights)
        for name, moved in found.items():
            derivative = (up[name] - down[name]) / (2 * step) * len(scores)
            assert moved[place] == pytest.approx(derivative, abs=1e-6), name


@pytest.mark.parametrize(
    ("scores", "ratings", "reason"),
    [
        ([0.5], [3], "1 rating: a correlation needs at least 3"),
        ([0.5, 0.7], [3, 4], "2 ratings: a correlation needs at least 3"),
        ([0, 0, 0, 0], [1, 2, 3, 4], "every score is 0: a correlation needs different ones"),
        ([0.1 + 0.2, 0.3, 0.3], [1, 2, 3], "every score is 0.3: a correlation"),
        ([1, 2, 3, 4], [3, 3, 3, 3], "every rating is 3: a correlation needs different ones"),
        ([1, 2, np.inf], [1, 2, 3], "some score is not"),
    ],
)
def test_where_there_is_no_correlation_a_word_says_why(scores, ratings, reason):
    found = correlations.correlate_ratings(
        np.array(scores, np.float64), np.array(ratings, np.float64), np.arange(len(scores))
    )
    assert reason in found["reason"]
    assert {found[name] for name in correlations.NAMES} == {None}
    json.dumps(found, allow_nan=False)


def test_a_perfect_correlation_has_no_interval_and_says_so():
    scores = np.arange(20.0)
    found = correlations.correlate_ratings(scores, scores**3, np.arange(20))
    assert found["kendall_b"] == found["spearman"] == 1
    assert found["intervals"]["kendall_b"] is None
    assert found["intervals"]["pearson"] is not None
    assert found["reason"] == (
        "no interval and no p where it is perfect: spearman, kendall_b, kendall_c"
    )
    assert found["kendall_p"] is None
    json.dumps(found, allow_nan=False)


def test_fifty_thousand_lines_take_no_pairs_of_them():
    """Pair by pair this would be 20 GB."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=50_000)
    ratings = scores + rng.normal(size=50_000)
    found = correlations.correlate_ratings(scores, ratings, np.arange(50_000))
    low, high = found["intervals"]["kendall_b"]
    assert 0.49 < low < 0.5 < high < 0.51


# Files whose lines of one image depend on each other.
SIZES = [(100, 3), (100, 10), (100, 30), (40, 8)]
WITHIN = 0.5  # the correlation of two lines of one image, in scores and in quality


def _draw(rng, many, lines, link):
    """Scores that follow quality by `link`; ratings from 0 to 4. Images have as many lines as
    `lines` says, or half of it more or fewer.
    """
    sizes = rng.integers(math.ceil(lines / 2), 3 * lines // 2 + 1, many)
    groups = np.repeat(np.arange(many), sizes)

    def correlated():
        shared, own = rng.normal(size=many)[groups], rng.normal(size=len(groups))
        return math.sqrt(WITHIN) * shared + math.sqrt(1 - WITHIN) * own

    quality = correlated()
    scores = np.maximum(correlated() + link * quality, -0.5)
    return scores, np.round(quality + 2).clip(0, 4), groups


@pytest.mark.slow
@pytest.mark.parametrize(("many", "lines"), SIZES)
def test_five_of_a_hundred_files_without_agreement_seem_to_have_some(many, lines):
    """The interval leaves out 0 where p < .05. Of 4,000 files, the share itself is known to .0034
    (a standard error).
    """
    small = dict.fromkeys(correlations.NAMES, 0)
    for seed in range(4000):
        found = correlations.correlate_ratings(*_draw(np.random.default_rng(seed), many, lines, 0))
        for name, field in correlations.P_VALUES.items():
            low, high = found["intervals"][name]
            assert (found[field] < 0.05) == (low > 0 or high < 0), name
            small[name] += found[field] < 0.05
    for name, times in small.items():
        assert 0.04 <= times / 4000 <= 0.06, name


def test_pearsons_standard_error_is_that_of_leaving_each_image_out():
    scores, ratings, groups = _draw(np.random.default_rng(1), 60, 6, 0.5)
    found = correlations.correlate_ratings(scores, ratings, groups)
    without = [
        np.corrcoef(scores[groups != each], ratings[groups != each])[0, 1] for each in range(60)
    ]
    r = np.corrcoef(scores, ratings)[0, 1]
    error = math.sqrt(np.var(without) * 59) / (1 - r**2)
    expected = 2 * stats.t.sf(math.atanh(r) / error, 59)
    assert found["pearson_p"] == pytest.approx(expected, rel=1e-9)
    low, high = found["intervals"]["pearson"]
    half = (math.atanh(high) - math.atanh(low)) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, 59) * error, rel=1e-9)


def test_kendalls_standard_error_is_the_clustered_sandwichs():
    """By its definition: a line's share of the net agreements, summed by image."""
    scores, ratings, groups = _draw(np.random.default_rng(2), 50, 4, 0.5)
    found = correlations.correlate_ratings(scores, ratings, groups)
    signs = np.sign(scores[:, None] - scores) * np.sign(ratings[:, None] - ratings)
    levels = min(len(np.unique(scores)), len(np.unique(ratings)))
    moved = 2 * (signs.mean(axis=1) - signs.mean()) * levels / (levels - 1)
    meat = sum(moved[groups == each].sum() ** 2 for each in range(50)) * 50 / 49
    tau = found["kendall_c"]
    error = math.sqrt(meat) / len(scores) / (1 - tau**2)
    expected = 2 * stats.t.sf(math.atanh(tau) / error, 49)
    assert found["kendall_c_p"] == pytest.approx(expected, rel=1e-9)


def test_the_only_group_that_varies_cannot_be_left_out():
    """All scores but those of one image are equal: there is an interval nevertheless."""
    scores = np.array([1.0, 2.0, *np.zeros(30)])
    groups = np.array([0, 0, *range(1, 31)])
    found = correlations.correlate_ratings(scores, np.arange(32.0), groups)
    assert found["intervals"]["pearson"][0] < found["pearson"] < found["intervals"]["pearson"][1]
