"""Oracles: scipy's own correlations of one pair at a time, all orders of few models, published
critical values, and the definitions in deploy/guide/probes-and-studies.md.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from prescore.models.studies import Correlation
from service.contract.errors import RequestRefused
from workers.bench.study import correlations
from workers.bench.study.rows import StratumRows, join_rows

STRATA = [(count, number) for count in (1, 2) for number in range(count)]
SHORT = {"first": 6, "second": 6}  # models of a dataset


def _rows(pregen=None, postgen=None, seed=0):
    rng = np.random.default_rng(seed)
    own = [
        (dataset, f"{dataset} {model}", *stratum)
        for dataset, models in SHORT.items()
        for model in range(models)
        for stratum in STRATA
    ]
    n = len(own)
    columns = [list(column) for column in zip(*own, strict=True)]
    usual = {"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.integers(0, 4, n) / 2}
    score = rng.normal(size=n) + usual["a"]
    return StratumRows(
        *columns, {**usual, **(pregen or {})}, {"cider_d": score} if postgen is None else postgen
    )


def _by_name(found, metric="cider_d"):
    return {each["metric"]: each for each in found["metrics"][metric]["correlations"]}


def _share(x, y):
    """The share of all orders of y in which the rank correlation with x is as far from 0. In whole
    numbers: twice the ranks, whose products add up to n(n + 1)² on average.
    """
    x, y = ((2 * stats.rankdata(side)).astype(int).tolist() for side in (x, y))
    mean = len(x) * (len(x) + 1) ** 2
    far = [
        abs(sum(a * b for a, b in zip(x, order, strict=True)) - mean)
        for order in itertools.permutations(y)
    ]
    return Fraction(sum(each >= far[0] for each in far), len(far))


def test_correlations_are_scipys_over_all_rows_and_within_each_dataset():
    rows = _rows()
    found = _by_name(correlations.correlate_scores(rows))
    y = rows.postgen["cider_d"]
    for name, x in rows.pregen.items():
        whole = stats.pearsonr(x, y)
        assert found[name]["r"] == pytest.approx(whole.statistic, rel=1e-12)
        assert found[name]["r2"] == pytest.approx(whole.statistic**2, rel=1e-12)
        assert found[name]["p"] == pytest.approx(whole.pvalue, rel=1e-9)
        for dataset, models in SHORT.items():
            part = np.array([own == dataset for own in rows.datasets])
            own = found[name]["datasets"][dataset]
            within = stats.pearsonr(x[part], y[part])
            assert (own["r"], own["p"]) == pytest.approx((within.statistic, within.pvalue))
            one = part & (np.array(rows.strata) == 1)
            ranks = stats.spearmanr(x[one], y[one])
            assert own["spearman"] == pytest.approx(ranks.statistic)
            assert own["spearman_p"] == pytest.approx(float(_share(x[one], y[one])))
            assert own["models"] == models


def test_the_highest_r2_comes_first_whatever_its_sign():
    y = np.arange(36.0)
    rows = _rows({"against": -y, "near": y + np.tile([0, 9], 18)}, {"cider_d": y})
    assert list(_by_name(correlations.correlate_scores(rows)))[:2] == ["against", "near"]


def test_metrics_that_are_infinite_somewhere_or_constant_in_a_dataset_are_left_out_everywhere():
    rng = np.random.default_rng(1)
    infinite, wanting, same, within = rng.normal(size=(4, 36))
    infinite[3], wanting[5] = np.inf, np.nan
    same[:] = 0.1
    within[18:] = 2.0
    nearly = within.copy()
    nearly[-1] = np.nextafter(2.0, 3)
    rows = _rows({"i": infinite, "w": wanting, "s": same, "d": within, "nearly": nearly})
    found = correlations.correlate_scores(rows)
    assert found["pregen"] == {"of": 8, "remain": 4, "infinite": 2, "constant": 2}
    assert set(_by_name(found)) == {"a", "b", "c", "nearly"}


def test_a_score_that_some_rows_have_not_is_correlated_over_the_others():
    rows = _rows()
    partly = rows.postgen["cider_d"].copy()
    partly[:9] = np.nan
    found = correlations.correlate_scores(_rows(postgen={"spice": partly}))
    expected = stats.pearsonr(rows.pregen["a"][9:], partly[9:]).statistic
    assert found["metrics"]["spice"]["rows"] == 27
    assert _by_name(found, "spice")["a"]["r"] == pytest.approx(expected)
    assert _by_name(found, "spice")["a"]["datasets"]["first"]["models"] == 3


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.full(36, 0.5), "the same in all rows"),
        (np.where(np.arange(36) < 2, np.arange(36.0), np.nan), "needs 3 rows, 2 have it"),
    ],
)
def test_where_there_is_no_correlation_the_reason_is_said(values, reason):
    found = correlations.correlate_scores(_rows(postgen={"meteor": values}))["metrics"]["meteor"]
    assert reason in found["reason"]
    assert (found["correlations"], found["of_images"]) == ([], None)


def test_ranks_of_models_that_are_all_equal_are_none():
    whole = np.arange(36) % 3 == 0
    x = np.where(whole, 1.0, np.arange(36))
    own = _by_name(correlations.correlate_scores(_rows({"x": x})))["x"]["datasets"]["first"]
    assert (own["spearman"], own["spearman_p"]) == (None, None)
    assert own["r"] is not None


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_huge_and_tiny_scores_correlate_as_any(scale):
    rows = _rows()
    rows = _rows({"large": rows.pregen["a"] * scale, "far": rows.pregen["a"] * scale + scale})
    found = _by_name(correlations.correlate_scores(rows))
    assert found["large"]["r"] == pytest.approx(found["a"]["r"], rel=1e-12)
    assert found["far"]["r"] == pytest.approx(found["a"]["r"], rel=1e-12)


def test_the_share_of_images_is_the_variance_between_strata_of_a_dataset():
    rows = _rows()
    y = rows.postgen["cider_d"]
    groups = {}
    for cell, value in zip(rows.cells, y, strict=True):
        groups.setdefault(cell, []).append(value)
    within = sum(len(group) * np.var(group) for group in groups.values())
    expected = 1 - within / (len(y) * np.var(y))
    found = correlations.correlate_scores(rows)["metrics"]["cider_d"]["of_images"]
    assert found == pytest.approx(expected, rel=1e-12)


def test_rows_are_joined_and_what_some_have_not_is_wanting():
    joined = join_rows(
        [_rows(postgen={"cider_d": np.arange(36.0)}), _rows({"new": np.ones(36)}, {})]
    )
    assert len(joined) == 72
    assert np.isnan(joined.postgen["cider_d"]).tolist() == [False] * 36 + [True] * 36
    assert np.isnan(joined.pregen["new"]).tolist() == [True] * 36 + [False] * 36


def test_rows_of_other_document_frequencies_are_not_mixed():
    x = np.arange(3.0)
    parts = [
        StratumRows(["d"] * 3, ["m"] * 3, [1, 2, 2], [0, 0, 1], {"a": x}, {"cider_d": x}, idf)
        for idf in ("dataset", "stratum", None)
    ]
    with pytest.raises(RequestRefused, match="idf: dataset, not known, stratum"):
        join_rows(parts)


@pytest.mark.parametrize(("models", "told"), [(3, False), (4, False), (5, True)])
def test_few_models_in_the_same_order_are_no_evidence(models, told):
    """Two of 24 orders of four models agree perfectly with another one, and p by the usual formula
    would be 0.
    """
    values = np.arange(models, dtype=float)[None]
    every = correlations.correlate_spearman(values, values[0], np.ones(models, bool))
    found = correlations._agreement(every, 0)
    assert found["spearman"] == 1
    assert (found["spearman_p"] is not None) == told


def test_of_one_model_there_is_no_share():
    x = np.arange(3.0)
    one = StratumRows(["d"] * 3, ["m"] * 3, [1, 2, 2], [0, 0, 1], {"a": x}, {"cider_d": x})
    found = correlations.correlate_scores(one)
    assert (found["models"], found["metrics"]["cider_d"]["of_images"]) == (1, None)


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


def _p(x, y):
    return correlations.correlate_spearman(x[None], y, np.ones(len(y), bool))["p"][0]


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
