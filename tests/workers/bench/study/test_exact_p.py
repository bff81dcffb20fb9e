"""Oracle: every order in turn, by itertools and by scipy; and published critical values."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from prescore.models.studies import Correlation
from workers.bench.study import correlations


def _p(x, y):
    every = correlations.correlate_spearman(
        np.array([x], float), np.array(y, float), np.ones(len(y), bool)
    )
    return every["p"][0]


def _share(x, y):
    """In whole numbers: twice the ranks, whose products add up to n(n + 1)² on average."""
    x, y = ((2 * stats.rankdata(side)).astype(int).tolist() for side in (x, y))
    mean = len(x) * (len(x) + 1) ** 2
    far = [
        abs(sum(a * b for a, b in zip(x, order, strict=True)) - mean)
        for order in itertools.permutations(y)
    ]
    return Fraction(sum(each >= far[0] for each in far), len(far))


@pytest.mark.parametrize(
    ("n", "share"), [(5, Fraction(2, 120)), (6, Fraction(2, 720)), (10, Fraction(2, 3628800))]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_models_in_the_same_or_the_opposite_order_are_two_orders_of_all(n, share, sign):
    assert _p(range(n), sign * np.arange(n)) == pytest.approx(float(share), rel=1e-12)


@pytest.mark.parametrize("levels", [2, 3, 100])
@pytest.mark.parametrize("n", [3, 4, 5, 6, 7])
def test_p_is_the_share_of_orders_whatever_is_tied(n, levels):
    rng = np.random.default_rng(n * levels)
    y = rng.integers(0, levels, n)
    y[:2] = 0, 1
    scores = rng.integers(0, levels, (5, n)).astype(float)
    scores[:, 0] = scores[:, 1] + 1
    found = correlations.correlate_spearman(scores, y.astype(float), np.ones(n, bool))["p"]
    assert found == pytest.approx([float(_share(x, y)) for x in scores], rel=1e-12)


@pytest.mark.parametrize(
    ("n", "critical"), [(6, 0.886), (7, 0.786), (8, 0.738), (9, 0.700), (10, 0.648)]
)
def test_published_critical_values_are_the_least_that_reach_05(n, critical):
    """Two-sided .05, exact (Zar 1972, Significance testing of the Spearman rank correlation
    coefficient).
    """
    ranks = tuple(range(2, 2 * n + 1, 2))
    spread = sum((rank - (n + 1)) ** 2 for rank in ranks)
    tail = correlations._tail(ranks, ranks)
    there = np.flatnonzero(np.append(tail[:-1] > tail[1:], True) & (tail <= 0.05))
    assert there[0] / spread == pytest.approx(critical, abs=5e-4)


def test_of_equal_values_there_is_no_p():
    assert np.isnan(_p([1, 1, 1, 1, 1], range(5)))


def test_of_more_models_it_is_the_usual_one():
    x, y = np.random.default_rng(1).normal(size=(2, correlations.MOST_EXACT + 1))
    assert _p(x, y) == pytest.approx(stats.spearmanr(x, y).pvalue)
    assert _p(x[1:], y[1:]) != pytest.approx(stats.spearmanr(x[1:], y[1:]).pvalue, rel=1e-3)


def test_up_to_how_many_models_it_is_exact_is_described():
    assert (
        f"up to {correlations.MOST_EXACT} models"
        in Correlation.model_fields["spearman_p"].description
    )


def test_ranks_without_ties_are_counted_once_for_all_metrics():
    correlations._tail.cache_clear()
    scores = np.random.default_rng(2).normal(size=(673, 10))
    for _ in range(3):
        correlations.correlate_spearman(scores[1:], scores[0], np.ones(10, bool))
    assert correlations._tail.cache_info().misses == 1
