"""Correlations by their definitions, pair by pair; intervals by derivatives and by resampling."""

import json

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


@pytest.mark.long
def test_intervals_are_as_wide_as_a_bootstrap_over_groups_has_them():
    """Groups of two lines that share an effect: no formula for independent ratings would do."""
    rng = np.random.default_rng(2)
    scores, ratings, lines = _made_up(100, 3)
    groups = lines // 2
    scores = scores + rng.normal(size=50)[groups]
    found = correlations.correlate_ratings(scores, ratings, groups)
    drawn = rng.integers(0, 50, (250, 50))
    places = [
        np.concatenate([np.arange(6 * group, 6 * group + 6) for group in each]) for each in drawn
    ]
    resampled = [_by_definition(scores[each], ratings[each]) for each in places]
    for name, (low, high) in found["intervals"].items():
        expected = np.std(np.arctanh([each[name] for each in resampled]))
        width = (np.arctanh(high) - np.arctanh(low)) / 2 / stats.t.ppf(0.975, 49)
        assert width == pytest.approx(expected, rel=0.2), name
        assert low < found[name] < high


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
