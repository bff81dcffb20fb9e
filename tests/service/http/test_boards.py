"""Leaderboard and history of real evaluations, through HTTP and through the command.

In process: a board is read from the record, which is a real one, and printed from the answer.
"""

import csv
import json

import pytest

from helpers.submissions import evaluate, run_command

SAID = {"good": "w2 w3 w4 w5", "same": "w2 w3 w4 w5", "poor": "w9"}


@pytest.fixture(scope="module")
def evaluations(service):
    """Three systems of one season, one of them of two captions alone."""
    found = {}
    with service.client() as client:
        for name, text in SAID.items():
            found[name] = _evaluate(client, name, text, range(40))["id"]
        _evaluate(client, "part", "w2", range(2), subset=True)
    return found


def _evaluate(client, name, text, images, **more):
    return evaluate(
        client,
        captions=[{"image": str(900 + n), "caption": text} for n in images],
        postgen=["cider_d"],
        tokenizer="none",
        labels={"season": "autumn", "system": name},
        **more,
    )


@pytest.mark.long
def test_the_best_is_first_and_of_equals_the_one_that_came_first(client, evaluations):
    place = "/v1/datasets/tiny/leaderboard?split=test&label.season=autumn"
    past = "/v1/datasets/tiny@v1/history?label.season=autumn"
    board = client.get(place).json()
    shown = client.get(f"/v1/evaluations/{evaluations['poor']}").json()["scores"]["cider_d"]
    sheet = client.get(place, headers={"Accept": "text/csv"})
    history = client.get(f"{past}&limit=1").json()
    rest = client.get(f"{past}&cursor={history['next']}").json()
    assert [each["labels"]["system"] for each in board["items"]] == ["good", "poor"]
    assert board["items"][1]["value"] == shown["value"]
    assert board["signature"] == shown["signature"]
    assert [row["evaluation"] for row in csv.DictReader(sheet.text.splitlines())] == [
        evaluations["good"],
        evaluations["poor"],
    ]
    assert sheet.headers["Content-Type"].startswith("text/csv")
    listed = [each["labels"]["system"] for each in history["items"] + rest["items"]]
    assert (listed, rest["next"]) == (["poor", "same", "good"], None)


@pytest.mark.usefixtures("evaluations")
def test_new_evaluations_are_ranked_by_the_paired_test(service):
    """As a comparison of the two says."""
    with service.client() as client:
        board = client.get("/v1/datasets/tiny/leaderboard?split=test&label.season=autumn").json()
        first, second = (each["evaluation"] for each in board["items"])
        begun = client.post("/v1/comparisons", json={"a": first, "b": second}).json()
        place = f"/v1/comparisons/{begun['id']}"
        found = client.get(place).json()["scores"]["cider_d"]
    assert [each["ranked_by"] for each in board["items"]] == ["test", "test"]
    assert [each["tied"] for each in board["items"]] == [found["p"] >= 0.05] * 2


def test_the_command_prints_the_board(service, evaluations, tmp_path):
    command = ["leaderboard", "tiny/test", "--label", "season=autumn"]
    *heading, first, second = run_command(service, *command).stdout.splitlines()
    assert heading[0].split() == ["on", "tiny@v1/test"]
    assert evaluations["good"] in first
    assert evaluations["poor"] in second
    sheet = tmp_path / "history.csv"
    told = run_command(service, *command, "--history", "--json", "--csv", sheet)
    found = [each["evaluation"] for each in json.loads(told.stdout)]
    assert found == [evaluations[name] for name in ("poor", "same", "good")]
    assert [row["evaluation"] for row in csv.DictReader(sheet.read_text().splitlines())] == found
