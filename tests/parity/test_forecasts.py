"""Forecasts on real histories: intervals that hold, and silence where there is no evidence."""

from pathlib import Path

import pytest

from parity import forecasts
from parity.forecasts import METRICS, PUBLISHED, leave_out_runs

SAID = Path(__file__).with_name("FORECASTS.md").read_text("utf-8")
NOMINAL = 0.9


def _table(evaluations, capsys):
    found = [leave_out_runs(evaluations, metric) for metric in METRICS]
    with capsys.disabled():
        print("", *(f"| {' | '.join(one.row)} |" for one in found), sep="\n")
        for reason in dict.fromkeys(reason for one in found for reason in one.reasons):
            print(f"  {reason}")
    return found


def _hold(found, at_least):
    given, covered = (sum(getattr(one, name) for one in found) for name in ("given", "covered"))
    assert given >= at_least
    assert covered >= NOMINAL * given


@pytest.mark.slow
def test_intervals_cover_a_training_run_on_shapes_that_was_left_out(tmp_path, capsys):
    found = _table(forecasts.shapes_runs(tmp_path), capsys)
    _hold(found, at_least=4 * 60)


@pytest.mark.slow
def test_intervals_cover_a_training_run_on_flickr8k_that_was_left_out(data, tmp_path, capsys):
    found = _table(forecasts.flickr8k_runs(data, tmp_path), capsys)
    _hold(found, at_least=60)


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
                assert given["none_because"].startswith("not enough evidence")
            found = leave_out_runs(evaluations, metric)
            assert found.given == 0, (dataset, metric)
            assert {reason[:19] for reason in found.reasons} == {"not enough evidence"}


def test_the_document_says_what_the_published_table_does(data):
    """Of all twelve: the best predictor's error, the error without it, how far they rank alike."""
    for dataset, evaluations in forecasts.published(data, runs=True).items():
        for metric in PUBLISHED.values():
            row = (
                f"| {dataset} | {metric} | {' | '.join(forecasts.card_row(evaluations, metric))} |"
            )
            assert row in SAID.splitlines(), row
