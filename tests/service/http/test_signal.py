"""A card over HTTP and by the command, of rows as evaluations leave them."""

import csv
import json

import numpy as np
import pytest

from helpers.fleet import bundle
from helpers.stored_records import enter_trainings
from helpers.submissions import run_command
from prescore.cli import signals, text
from prescore.models.signals import PERCENTS, SIGNAL_COLUMNS, MetricSignal
from service.contract.metrics import catalogue
from service.stored import datasets

PLACE = "/v1/datasets/tiny/signal"


@pytest.fixture(scope="module")
def trained(service):
    """Three trainings, of which METEOR tells no order at half of the steps."""
    enter_trainings(service.records, datasets.pin_split(service.records, "tiny/test"))


def test_the_route_answers_json_and_csv(client, trained):
    card = client.get(PLACE, params={"split": "test", "last": 4, "average": 2}).json()
    assert (card["trainings"], card["last"], card["average"]) == ({"r0": 6, "r1": 6, "r2": 6}, 4, 2)
    assert (card["pairs"], card["too_close"], card["none_because"]) == (3, 0, None)
    cider, meteor = sorted(card["metrics"], key=lambda one: one["metric"])
    assert cider["mean"] == pytest.approx(0.3 + 0.055)
    assert [one["accuracy"] for one in cider["decisions"]] == [None, None, 1, 1]
    assert [one["accuracy"] for one in meteor["decisions"]] == [None, None, 0, 0]
    answer = client.get(PLACE, headers={"Accept": "text/csv"})
    rows = list(csv.DictReader(answer.text.splitlines()))
    assert answer.headers["content-type"].startswith("text/csv")
    decided = {row["metric"]: (row["accuracy_50"], row["pairs_50"]) for row in rows}
    assert decided == {"meteor": ("0.0", "3"), "cider_d": ("1.0", "3")}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("split=none", 404),
        ("last=1", 422),
        ("target=mean_mean_count_none", 422),
        ("target=cidr_d", 422),
    ],
)
def test_a_wrong_question_is_refused(client, trained, query, status):
    assert client.get(f"{PLACE}?{query}").status_code == status
    assert client.get("/v1/datasets/nowhere/signal").status_code == 404


def test_the_command_prints_a_table_and_writes_csv(service, trained, tmp_path):
    sheet = tmp_path / "signal.csv"
    lines = run_command(service, "signal", "tiny/test", "--csv", sheet).stdout.splitlines()
    assert lines[:3] == [
        "on         tiny@v1/test",
        "trainings  3, checkpoints 18",
        "target     cider_d orders 3 pairs; 0 are too close",
    ]
    (row,) = (line.split() for line in lines if line.startswith("cider_d"))
    signal, noise = 0.2 / 0.36, np.std([0.02, 0.03, 0.04, 0.05, 0.06], ddof=1)
    assert float(row[1]) == pytest.approx(
        signal / np.mean([noise / (0.24 + at / 10) for at in range(3)]), abs=0.05
    )
    assert row[2:] == ["-", "checkpoints", "-", "-", "-", "1.00", "1.00"]
    assert tuple(next(csv.reader(sheet.read_text().splitlines()))) == SIGNAL_COLUMNS
    one = run_command(service, "signal", "tiny/test", "--metrics", "meteor", "--json").stdout
    assert [each["metric"] for each in json.loads(one)["metrics"]] == ["meteor"]
    wrong = run_command(service, "signal", "tiny/test", "--target", "cidr_d", code=2)
    assert "did you mean cider_d or" in wrong.stderr
    absent = run_command(service, "signal", "tiny/test", "--metrics", "spice", code=2)
    assert "no 'spice' at a training's end; there is" in absent.stderr


def test_the_table_fits_a_terminal():
    """Of the longest names and numbers."""
    decisions = [
        {"percent": percent, "accuracy": 0.5, "interval": [0.1, 0.8], "pairs": 9}
        for percent in PERCENTS
    ]
    numbers = dict.fromkeys(MetricSignal.model_fields, 123.45678)
    numbers |= {"largest_noise": "checkpoints", "signature": "x", "trainings": 3, "relative": True}
    longest = max(catalogue.METRICS, key=len)
    row = MetricSignal.model_validate({**numbers, "metric": longest, "decisions": decisions})
    lines = text.align_rows([signals._HEADING, signals._format_row(row)])
    assert max(map(len, lines)) <= 120
    assert lines[1].endswith("0.50 ±0.40")


def test_a_split_without_trainings_says_which_labels_it_needs(service, client):
    client.put("/v1/datasets/bare", content=bundle(4)).raise_for_status()
    told = run_command(service, "signal", "bare/test", code=3)
    assert "no evaluation of bare/test has the labels run and step" in told.stderr
