"""The client's commands that only look, and those that let the service compute, on a real service.

In process: what is printed is made of the service's answers.
"""

import csv
import json
import re
import shlex
from functools import partial

import pytest

from helpers.fleet import bundle_of, checkpoint, upload
from helpers.submissions import evaluate, run_command
from prescore import Client

IMAGES = [str(900 + number) for number in range(40)]
SAID = [{"image": image, "caption": f"w2 w3 w{at % 7}"} for at, image in enumerate(IMAGES)]
FROM = {"dataset": "tiny/test", "tokenizer": "none"}
ASKED = {
    "outputs": {**FROM, "captions": SAID, "postgen": ["cider_d", "bleu"]},
    "model": {
        **FROM,
        "checkpoint": None,
        "postgen": ["cider_d"],
        "decoding": {"beam": 1},
        "tokens": {"top": 2, "entropy": True},
    },
}


@pytest.fixture(scope="module")
def runs(service):
    """Two runs by name."""
    ids = {}
    with service.client() as client:
        digest = upload(client, checkpoint(0))
        for name, asked in ASKED.items():
            source = {"checkpoint": digest} if "checkpoint" in asked else {}
            request = {**asked, **source, "labels": {"system": name, "branch": "main"}}
            ids[name] = evaluate(client, **request)["id"]
    return ids


@pytest.fixture
def prescore(service, runs):
    return partial(run_command, service)


@pytest.mark.long
def test_runs_are_listed_the_latest_first(prescore, runs, tmp_path):
    lines = prescore("list", "tiny/test", "--metrics", "cider_d,perplexity").stdout.splitlines()
    assert lines[0].split()[:3] == ["run", "status", "on"]
    assert [line.split()[0] for line in lines[1:]] == [runs["model"], runs["outputs"]]
    sheet = tmp_path / "runs.csv"
    one = ("list", "--label", "system=outputs", "--csv", sheet, "--json")
    assert [each["id"] for each in json.loads(prescore(*one).stdout)] == [runs["outputs"]]
    [row] = csv.DictReader(sheet.read_text().splitlines())
    assert (row["evaluation"], json.loads(row["labels"])["system"]) == (runs["outputs"], "outputs")
    nobody = prescore("list", "--dataset", "tiny/other")
    told = "no run matches\nother: no such split; there is test\n"
    assert (nobody.stdout, nobody.stderr) == ("", told)


@pytest.mark.long
def test_captions_are_sorted_searched_and_written(prescore, runs, tmp_path):
    found = json.loads(prescore("captions", runs["outputs"], "--sort", "cider_d", "--json").stdout)
    values = [each["scores"]["cider_d"] for each in found]
    assert values == sorted(values)
    assert len({each["image"] for each in found}) == len(IMAGES)
    best = prescore("captions", runs["outputs"], "--sort=-cider_d", "--limit", 1).stdout
    assert found[-1]["caption"] in best.splitlines()[1]
    searched = prescore("captions", runs["outputs"], "--search", "W6").stdout.splitlines()[1:]
    assert len(searched) == sum(each["caption"].endswith("w6") for each in SAID)
    coco = tmp_path / "results.json"
    assert prescore("captions", runs["outputs"], "--coco", coco).stdout == ""
    assert {each["caption"] for each in json.loads(coco.read_text())} == {
        each["caption"] for each in SAID
    }
    wrong = prescore("captions", runs["outputs"], "--sort", "cidr_d", code=2)
    assert "did you mean cider_d?" in wrong.stderr


@pytest.mark.long
def test_tokens_are_a_table_for_each_reference(service, prescore, runs, tmp_path):
    sheet = tmp_path / "tokens.csv"
    shown = prescore("tokens", runs["model"], IMAGES[0], "--csv", sheet).stdout
    with Client(service.url) as client:
        found = client.tokens(runs["model"], IMAGES[0])
    rows = list(csv.DictReader(sheet.read_text().splitlines()))
    assert len(rows) == sum(len(reference.tokens) for reference in found.captions)
    assert float(rows[0]["logp"]) == found.captions[0].tokens[0].logp
    assert shown.splitlines()[0] == found.captions[0].text
    assert f"{found.captions[0].tokens[0].logp:.3f}" in shown
    told = prescore("tokens", runs["outputs"], IMAGES[0], code=2)
    assert told.stdout == ""


@pytest.mark.long
def test_health_and_probes_are_computed_when_asked_and_shown_in_the_board(prescore):
    first = prescore("health", "tiny/test", code=3)
    assert "prescore health tiny/test --compute" in first.stderr
    some = ("--probes", "human,single", "--metrics", "bleu", "--tokenizer", "none")
    table = prescore("probe", "tiny/test", *some)
    assert "human  done" in table.stderr
    assert re.search(r"RvR .* 0\.[0-9]{4}", table.stdout)
    assert table.stdout.count("RvR: people's captions against other people's; ") == 1
    identity = table.stdout.split()[0]
    assert json.loads(prescore("probes", identity, "--json").stdout)["id"] == identity
    assert prescore("probes", "tiny/test").stdout == table.stdout
    prescore("health", "tiny/test", code=3)  # these were not all the usual ones
    prescore("probe", "tiny/test", "--metrics", "cider_d", "--tokenizer", "none")
    assert set(json.loads(prescore("health", "tiny/test", "--json").stdout)) == {"cider_d"}
    heading = prescore("health", "tiny/test").stdout.splitlines()[1]
    assert heading.split()[:2] == ["metric", "people"]
    board = prescore("leaderboard", "tiny/test", "--metric", "cider_d,bleu_1").stdout
    facts = dict(line.split(maxsplit=1) for line in board.split("\n\n")[0].splitlines())
    assert facts["health"].startswith("people score ")
    assert facts["metric"] == "cider_d, higher is better"
    assert facts["scored"].startswith("as  cider_d|")


def test_the_history_of_a_board_is_told_and_written(prescore, runs, tmp_path):
    command = ("leaderboard", "tiny/test", "--metric", "cider_d", "--label", "branch=main")
    sheet = tmp_path / "history.csv"
    told = prescore(*command, "--history", "--json", "--csv", sheet)
    found = [each["evaluation"] for each in json.loads(told.stdout)]
    assert found == [runs["model"], runs["outputs"]]
    assert [row["evaluation"] for row in csv.DictReader(sheet.read_text().splitlines())] == found


@pytest.mark.long
def test_a_board_says_which_command_shows_the_runs_that_it_leaves_out(service, prescore):
    people = {"a.jpg": ["a dog runs", "a dog"], "b.jpg": ["a man sits", "a man"]}
    said = [{"image": image, "caption": texts[0]} for image, texts in people.items()]
    ids = {}
    with service.client() as client:
        client.put("/v1/datasets/boarded", content=bundle_of(people)).raise_for_status()
        asked = {"dataset": "boarded/test", "captions": said, "postgen": ["bleu_1"]}
        for tokenizer in ("none", "ptb"):
            ids[tokenizer] = evaluate(client, **asked, tokenizer=tokenizer)["id"]
    told = prescore("leaderboard", "boarded", "--metric", "bleu_1", "--history").stdout
    assert ids["ptb"] in told
    assert ids["none"] not in told
    (line,) = (line for line in told.splitlines() if line.startswith("show them"))
    shown = prescore(*shlex.split(line.removeprefix("show them"))[1:]).stdout
    assert ids["none"] in shown
    assert ids["ptb"] not in shown


def test_a_split_that_was_not_studied_says_why(prescore):
    told = prescore("correlations", "tiny/test", code=3)
    assert told.stdout == ""
    assert "a study needs finished evaluations of 3 models" in told.stderr
    refused = prescore("correlations", "tiny/test", "--compute", code=2)
    assert "a study needs finished evaluations of 3 models" in refused.stderr


def test_trainings_are_listed_and_files_are_looked_at_first(prescore, tmp_path):
    assert "nothing has been trained" in prescore("learned", "list").stderr
    wrong = prescore("learned", "train", "tiny/test", "--outputs", "a", code=2)
    assert "NAME=FILE or NAME=EV" in wrong.output
    few = prescore("learned", "train", "tiny/test", "--outputs", "a=ev_1", code=2)
    assert "--outputs: expected at least 3" in few.stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("leaderboard", "tinny/test"), "; did you mean tiny?"),
        (("leaderboard", "tiny/test", "--metric", "cidr_d"), "; did you mean cider_d"),
        (
            ("gate", "sha256:" + "0" * 64, "--dataset", "tinny/test", "--gate", "b > 0"),
            "mean tiny?",
        ),
        (("leaderboard", "tiny/test", "--label", "brnch=main"), "did you mean branch=main?"),
        (("list", "--label", "branch=mian"), "branch=mian: did you mean branch=main?"),
    ],
)
def test_a_name_that_is_nearly_right_is_told(prescore, arguments, hint):
    code = 0 if "--label" in arguments else 2
    assert hint in prescore(*arguments, code=code).stderr
