"""A ranking over HTTP, by the command and by the client, of rows as evaluations leave them."""

import csv
import json
import random

import pytest

from helpers.stored_records import enter_run, enter_scores
from helpers.submissions import run_command
from prescore.models.sweeps import SWEEP_COLUMNS
from service.stored import datasets

PLACE = "/v1/datasets/tiny/ranking"
SWEPT = "?label.sweep=7"


@pytest.fixture(scope="module")
def trained(service):
    """Ten trainings that have ended, and four that are at 10 %."""
    rng = random.Random(1)
    pinned = datasets.pin_split(service.records, "tiny/test")
    with service.records.transaction() as connection:
        for number in range(14):
            quality = 0.2 + number / 20 if number < 10 else (0.3, 0.6, 0.35, 0.61)[number - 10]
            for step in (100, 1000) if number < 10 else (100,):
                value = quality * (0.5 if step == 100 else 1) + 0.002 * rng.gauss()
                identity, marks = f"ev_{number}_{step}", {"run": f"r{number}", "step": str(step)}
                marks |= {"sweep": "7"} if number >= 10 else {}
                enter_run(connection, identity, pinned, {}, marks, created_at=step)
                scores = {"cider_d": (value, value - 1e-3, value + 1e-3)}
                enter_scores(connection, identity, scores, "x|v:1")


def test_the_route_answers_json_and_csv(client, trained):
    found = client.get(f"{PLACE}{SWEPT}&split=test&at=10&sure=0.9").json()
    assert (found["labels"], found["percent"], found["sure"]) == ({"sweep": "7"}, 10, 0.9)
    advice = {run["run"]: run["advice"] for run in found["runs"]}
    assert advice == {"r10": "stop", "r11": "keep", "r12": "stop", "r13": "keep"}
    assert (found["not_yet"], found["metric"], found["past"]) == (None, "cider_d", 10)
    assert found["probability"] > 0.99
    answer = client.get(f"{PLACE}{SWEPT}", headers={"Accept": "text/csv"})
    rows = list(csv.DictReader(answer.text.splitlines()))
    assert answer.headers["content-type"].startswith("text/csv")
    assert {row["run"]: row["advice"] for row in rows} == advice
    behind = client.get(f"{PLACE}{SWEPT}&steps=4000&at=10").json()
    assert behind["not_yet"].startswith(
        "expected all runs at 10 % of their steps, found r10 at 2.5"
    )


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?label=sweep=7",
        f"{SWEPT}&at=0",
        f"{SWEPT}&at=101",
        f"{SWEPT}&at=nan",
        f"{SWEPT}&at=10%25",
        f"{SWEPT}&sure=1",
        f"{SWEPT}&sure=nan",
        f"{SWEPT}&steps=0",
        f"{SWEPT}&target=mean_mean_count_none",
        f"{SWEPT}&target=cidr_d",
    ],
)
def test_a_wrong_question_is_refused(client, trained, query):
    assert client.get(f"{PLACE}{query}").status_code == 422
    assert client.get(f"/v1/datasets/nowhere/ranking{SWEPT}").status_code == 404


def test_the_command_prints_a_sentence_and_a_table_and_writes_csv(service, trained, tmp_path):
    sheet = tmp_path / "sweep.csv"
    asked = "rank", "tiny/test", "--label", "sweep=7"
    lines = run_command(service, *asked, "--at", "10%", "--csv", sheet).stdout.splitlines()
    assert lines[0].startswith("2 of 4 runs can be stopped at 10 %: the best is among the other 2")
    assert lines[2:5] == [
        "on            tiny@v1/test",
        "past          10 trainings, recipes 10",
        "early score   cider_d",
    ]
    (row,) = (line.split() for line in lines if line.startswith("r10"))
    assert row[-1] == "stop"
    assert tuple(next(csv.reader(sheet.read_text().splitlines()))) == SWEEP_COLUMNS
    assert json.loads(run_command(service, *asked, "--json").stdout)["percent"] == 10
    late = run_command(service, *asked, "--at", "25 %", code=3).stdout
    assert late.startswith("not yet: expected all runs at 25 % of their steps, found r10 at 10 %")
    assert (
        "expected a percent such as 10%" in run_command(service, *asked, "--at", "x", code=2).stderr
    )
    assert "found none" in run_command(service, "rank", "tiny/test", code=2).stderr
    wrong = run_command(service, *asked, "--target", "cidr_d", code=2)
    assert "did you mean cider_d or" in wrong.stderr
