"""Fits, ranks and errors of runs that were left out, against their definitions."""

import math

import numpy as np
import pytest
from scipy import stats

from workers.analysis import forecasts
from workers.analysis.forecast_validation import (
    FITS,
    LeftOutErrors,
    MetricHistory,
    fit_upper_line,
    leave_better_out,
    leave_one_run_out,
    weigh_runs,
)

RUNS = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])


def _points(seed):
    rng = np.random.default_rng(seed)
    places = rng.choice(np.arange(12), len(RUNS)) / 12  # some of them equal
    return places, places**2 + rng.normal(scale=0.1, size=len(RUNS)), rng.uniform(0.2, 1, len(RUNS))


@pytest.mark.parametrize("seed", range(5))
def test_a_line_is_the_weighted_least_squares_line(seed):
    places, values, weights = _points(seed)
    slope, level = np.polyfit(places, values, 1, w=np.sqrt(weights))
    assert slope > 0
    at = np.array([0.0, 0.4, 2.0])
    np.testing.assert_allclose(FITS["line"](places, values, weights)(at), level + slope * at)


@pytest.mark.parametrize("seed", range(5))
def test_the_upper_line_weighs_places_by_the_square_of_their_height(seed):
    places, values, weights = _points(seed)
    heights = np.sqrt(weights) * (places - places.min())
    slope, level = np.polyfit(places, values, 1, w=heights)
    assert slope > 0
    at = np.array([1.0, 2.0])
    np.testing.assert_allclose(fit_upper_line(places, values, weights)(at), level + slope * at)


def test_bad_early_checkpoints_do_not_set_the_slope_of_the_upper_line():
    places = np.linspace(0.2, 0.5, 31)
    values = np.where(places < 0.25, places - 0.1, places)
    far, weights = np.array([0.6]), np.ones(31)
    assert FITS["line"](places, values, weights)(far)[0] > 0.63
    assert fit_upper_line(places, values, weights)(far)[0] == pytest.approx(0.6, abs=0.003)


@pytest.mark.parametrize("seed", range(5))
def test_a_monotone_fit_is_the_isotonic_regression_by_its_max_min_formula(seed):
    places, values, weights = _points(seed)
    knots = np.unique(places)
    expected = []
    for knot in knots:
        means = [
            [
                np.average(values[inside], weights=weights[inside])
                for high in knots[knots >= knot]
                for inside in [(places >= low) & (places <= high)]
            ]
            for low in knots[knots <= knot]
        ]
        expected.append(max(min(row) for row in means))
    curve = FITS["monotone"](places, values, weights)
    np.testing.assert_allclose(curve(knots), expected)
    between = (knots[0] + knots[1]) / 2
    assert curve(np.array([between]))[0] == pytest.approx((expected[0] + expected[1]) / 2)
    np.testing.assert_allclose(curve(np.array([-9.0, 9.0])), [expected[0], expected[-1]])


@pytest.mark.parametrize("fit", FITS)
def test_a_relation_of_the_wrong_sign_comes_out_flat(fit):
    places, weights = np.linspace(0, 1, 9), weigh_runs(RUNS)
    curve = FITS[fit](places, -places, weights)
    mean = np.average(-places, weights=weights)
    np.testing.assert_allclose(curve(places), mean)


@pytest.mark.parametrize("fit", [*FITS.values(), fit_upper_line])
def test_a_predictor_that_is_constant_says_the_mean(fit):
    values = np.arange(9.0)
    np.testing.assert_allclose(
        fit(np.full(9, 3.0), values, np.ones(9))(np.array([3.0])), values.mean()
    )


def test_a_run_that_is_left_out_has_no_part_in_what_is_said_of_it():
    places, values, _ = _points(0)
    seen = leave_one_run_out(FITS["line"], places, values, RUNS)
    for which, error, without in zip(seen.tested, seen.errors, seen.without, strict=True):
        rest = RUNS[which] != RUNS
        weights = np.array([1 / (run == RUNS).sum() for run in RUNS[rest]])
        curve = FITS["line"](places[rest], values[rest], weights)
        mean = np.average(values[rest], weights=weights)
        said = curve(places[[which]])[0]
        assert error == pytest.approx(values[which] - said)
        assert without == pytest.approx(values[which] - mean)


def test_what_lies_outside_the_range_of_the_other_runs_is_not_tested():
    places = np.array([0.0, 0.5, 1.0, 0.1, 0.6, 0.7])
    runs = np.array([0, 0, 0, 1, 1, 1])
    seen = leave_one_run_out(FITS["line"], places, places, runs)
    assert seen.tested.tolist() == [1, 3, 4, 5]


def test_the_best_so_far_is_forecast_from_other_runs_that_are_worse_by_the_gap():
    rng = np.random.default_rng(0)
    runs, gap = np.arange(24) % 3, 0.25
    places = rng.permutation(24) / 24
    values = places + rng.normal(scale=0.1, size=24)
    seen = leave_better_out(FITS["line"], places, values, runs, gap)
    expected = {}
    for at in range(24):
        rest = [
            other
            for other in range(24)
            if runs[other] != runs[at] and places[other] <= places[at] - gap
        ]
        if len(rest) < 8 or len({runs[other] for other in rest}) < 2:
            continue
        weights = np.array([1 / sum(runs[one] == runs[other] for one in rest) for other in rest])
        said = FITS["line"](places[rest], values[rest], weights)(places[[at]])[0]
        expected[at] = values[at] - said
    assert 4 <= len(expected) < 12
    assert seen.tested.tolist() == list(expected)
    np.testing.assert_allclose(seen.errors, list(expected.values()))
    assert len(leave_better_out(FITS["line"], places, values, runs, 1.0).errors) == 0


def _seen(errors, runs, places=None):
    errors, runs = np.array(errors), np.array(runs)
    places = np.zeros(len(errors)) if places is None else np.array(places)
    return LeftOutErrors(np.arange(len(errors)), places, errors, np.ones(len(errors)), runs)


def test_the_error_is_the_mean_over_runs_of_their_mean_squares():
    assert _seen([3.0, 3.0, 3.0, 1.0], [0, 0, 0, 1]).error == math.sqrt((9 + 1) / 2)


def test_an_intervals_width_counts_runs_and_not_evaluations():
    two = _seen([0.1] * 24, [0, 1] * 12).half_width(0.0)
    three = _seen([0.1] * 24, [0, 1, 2] * 8).half_width(0.0)
    assert two == pytest.approx(0.1 * math.tan(math.pi * 0.95 / 2))  # Student's t, 1 degree
    squared = 2 * (0.95**2) / (1 - 0.95**2)  # and 2
    assert three == pytest.approx(0.1 * math.sqrt(squared))


def test_where_errors_are_larger_the_interval_is_wider_and_nowhere_narrower_than_on_average():
    places = np.linspace(0, 1, 30)
    seen = _seen(np.where(places > 0.7, 0.5, 0.01), [at % 3 for at in range(30)], places)
    assert seen.half_width(0.0) == pytest.approx(4.3027 * seen.error, rel=1e-4)
    assert seen.half_width(1.0) > 1.5 * seen.half_width(0.0)


def test_an_interval_is_never_made_of_one_runs_errors():
    """Beside twenty small errors of one run, the next one of another counts as much."""
    places = [*np.linspace(0, 0.1, 20), 0.5, 1.0]
    width = _seen([0.01] * 20 + [0.3, 0.01], [0] * 20 + [1, 2], places).half_width(0.05)
    assert width == pytest.approx(12.7062 * math.sqrt((0.01**2 + 0.3**2) / 2), rel=1e-4)


def test_the_coverage_of_a_run_is_by_the_others_errors():
    errors, runs = [0.1] * 9 + [5.0] * 3, [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert _seen(errors, runs).coverage == 0.75
    assert _seen([0.1, 0.1], [0, 1]).coverage is None


@pytest.mark.parametrize("seed", range(3))
def test_the_rank_agreement_is_spearmans(seed):
    left, right, _ = _points(seed)
    expected = stats.spearmanr(left, right).statistic
    assert forecasts.correlate_ranks(left, right) == pytest.approx(expected)


def test_there_is_no_rank_agreement_with_a_constant():
    assert forecasts.correlate_ranks(np.ones(4), np.arange(4.0)) is None


def test_within_sets_only_what_happens_within_them_counts():
    sets = np.array([0, 0, 0, 1, 1, 1])
    left = np.array([1.0, 2, 3, 11, 12, 13])
    assert forecasts.correlate_within_sets(left, left, sets) == pytest.approx(1)
    turned = np.array([3.0, 2, 1, 13, 12, 11])  # the sets in order, each the wrong way round
    assert forecasts.correlate_within_sets(left, turned, sets) == pytest.approx(-1)
    assert forecasts.correlate_ranks(left, turned) > 0.5
    assert forecasts.correlate_within_sets(left, left, np.arange(6)) is None


def test_where_runs_have_one_evaluation_each_their_architectures_are_compared():
    architectures = np.array([0, 0, 1, 1, 1])

    def sets(*runs):
        history = MetricHistory(np.zeros(5), {}, np.array(runs), architectures)
        return forecasts.find_comparable_sets(history).tolist()

    assert sets(0, 1, 2, 3, 4) == architectures.tolist()
    assert sets(0, 1, 2, 3, 3) == architectures.tolist()
    assert sets(0, 0, 1, 2, 2) == [0, 0, 1, 2, 2]
