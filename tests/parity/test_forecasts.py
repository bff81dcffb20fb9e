"""Forecasts on real histories: intervals that hold, and silence where there is no evidence."""

from pathlib import Path

import pytest

from parity import drawn_runs, forecasts, power_laws
from parity.forecasts import METRICS, PUBLISHED, hold_out_best, leave_out_runs, sum_up

SAID = Path(__file__).with_name("FORECASTS.md").read_text("utf-8")
NOMINAL = 0.9
MOST_TIMES = 2


def _within(asked):
    return [one for one in asked if not one.is_beyond]


def _beyond(asked):
    return [one for one in asked if one.is_beyond]


def _show(capsys, title, rows):
    with capsys.disabled():
        print("", title, *(f"| {' | '.join(row)} |" for row in rows), sep="\n")


def _hold(found, at_least):
    given, covered = (sum(getattr(one, name) for one in found) for name in ("given", "covered"))
    assert given >= at_least
    assert covered >= NOMINAL * given


def _check(evaluations, capsys, within, beyond):
    """The three tables of a set, and what they have to hold."""
    left_out = [sum_up(name, _within(leave_out_runs(evaluations, name))) for name in METRICS]
    held_out = [sum_up(name, _beyond(hold_out_best(evaluations, name))) for name in METRICS]
    _show(capsys, "within the range", [one.row for one in left_out])
    _show(capsys, "beyond it", [(*one.row, one.times) for one in held_out])
    laws = [power_laws.compare_errors(evaluations, name) for name in METRICS]
    _show(capsys, "power laws", [one.row for one in laws])
    _hold(left_out, within)
    _hold(held_out, beyond)
    assert all(one.most_times <= MOST_TIMES for one in held_out)
    assert all(one.of_predictor < one.of_steps for one in laws)


@pytest.mark.slow
def test_intervals_cover_a_training_run_on_shapes_that_was_left_out(tmp_path, capsys):
    _check(forecasts.shapes_runs(tmp_path), capsys, within=4 * 60, beyond=20)


@pytest.mark.slow
def test_intervals_cover_a_training_run_on_flickr8k_that_was_left_out(data, tmp_path, capsys):
    _check(forecasts.flickr8k_runs(data, tmp_path), capsys, within=60, beyond=0)


@pytest.mark.slow
@pytest.mark.parametrize("runs", drawn_runs.SIZES)
def test_intervals_cover_a_drawn_run_within_the_range(runs, capsys):
    found = sum_up("cider_d", _within(drawn_runs.ask_within(runs, histories=500)))
    _show(capsys, f"{runs} drawn runs", [(*found.row, f"{drawn_runs.LUCK:.3f}")])
    _hold([found], at_least=200)


@pytest.mark.slow
@pytest.mark.parametrize("curve", drawn_runs.CURVES)
def test_intervals_cover_a_drawn_run_beyond_the_range(curve, capsys):
    found = sum_up("cider_d", _beyond(drawn_runs.ask_beyond(curve, histories=200)))
    _show(capsys, curve, [(*found.row, found.times)])
    _hold([found], at_least=40)
    assert found.most_times <= MOST_TIMES


# Each as a run of its own takes four times as long; the quicker sibling has them by architecture.
@pytest.mark.parametrize("runs", [pytest.param(True, marks=pytest.mark.slow), False])
def test_tuned_captioners_of_a_published_dataset_are_not_enough_evidence(data, runs):
    """Twelve of each: from all of them, and from the other eleven, or the other architectures."""
    for dataset, evaluations in forecasts.published(data, runs=runs).items():
        assert len(evaluations) == 12
        for metric in PUBLISHED.values():
            for one in evaluations:
                given = forecasts.forecast_metrics(evaluations, [metric], forecasts.pregen(one))[
                    metric
                ]
                assert given["value"] is None, (dataset, metric)
                assert "too little evidence" in given["none_because"]
            found = sum_up(metric, leave_out_runs(evaluations, metric))
            assert found.given == 0, (dataset, metric)
            assert sum_up(metric, hold_out_best(evaluations, metric)).given == 0
            assert all("too little evidence" in reason for reason in found.reasons)


def test_the_document_says_what_the_published_table_does(data):
    """Of all twelve: the best predictor's error, the error without it, how far they rank alike."""
    for dataset, evaluations in forecasts.published(data, runs=True).items():
        for metric in PUBLISHED.values():
            row = (
                f"| {dataset} | {metric} | {' | '.join(forecasts.card_row(evaluations, metric))} |"
            )
            assert row in SAID.splitlines(), row
