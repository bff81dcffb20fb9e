"""A study of real evaluations, beside scipy's numbers of their scores.

In process: which evaluations a study is of is read from the record when it is asked for.
"""

import csv

import pytest
from scipy import stats

from helpers.fleet import checkpoint, upload
from helpers.submissions import evaluate, finish, run_command

PLACE = "/v1/datasets/tiny/correlations"


def _evaluate(client, seed):
    asked = {"postgen": ["cider_d", "bleu"], "tokenizer": "none", "decoding": {"beam": 1}}
    return evaluate(client, checkpoint=upload(client, checkpoint(seed)), **asked)["id"]


def _studied(client, **asked):
    """A study that was asked for, at its end."""
    answer = client.post("/v1/studies", json={"dataset": "tiny/test", **asked})
    assert answer.status_code == 202, answer.text
    found = finish(client, answer.headers["Location"])
    assert found["status"] == "succeeded", found["error"]
    return found


def _told(service, sheet):
    """What the command computes and writes; equal studies are not computed twice."""
    asked = ("correlations", "tiny/test", "--compute", "--limit", 2, "--csv", sheet)
    told = run_command(service, *asked)
    assert told.stdout.splitlines()[0].split()[:3] == ["tiny@v1/test", "4", "models"]
    assert told.stderr.rstrip().endswith("succeeded")
    return list(csv.DictReader(sheet.read_text().splitlines()))


@pytest.mark.long
def test_a_study_is_made_when_it_is_asked_for(service, client, tmp_path):
    ids = [_evaluate(client, seed) for seed in range(3)]
    looked = client.get(PLACE).json()
    first = _studied(client)
    found = client.get(PLACE).json()
    own = _studied(client, idf="stratum", limit=1)
    ids.append(_evaluate(client, 3))
    again = client.get(PLACE).json()
    more = _studied(client)
    scores = {name: client.get(f"/v1/evaluations/{name}").json()["scores"] for name in ids}
    pregen = {name: client.get(f"/v1/evaluations/{name}/pregen").json()["scores"] for name in ids}
    printed = _told(service, tmp_path / "study.csv")
    assert (looked["study"], looked["under_way"], looked["none_because"]) == (None, None, None)
    assert (found["study"], found["study"]["rows"]) == (first["study"], 45)
    assert again == found
    assert set(more["study"]["evaluations"]) == set(ids)
    assert set(more["study"]["metrics"]) == {"cider_d", "bleu_1", "bleu_2", "bleu_3", "bleu_4"}
    for name in ("cider_d", "bleu_1"):
        values = [scores[each][name]["value"] for each in ids]
        for told in more["study"]["metrics"][name]["correlations"]:
            x = [pregen[each][told["metric"]]["value"] for each in ids]
            expected = stats.spearmanr(x, values)
            assert told["spearman"] == pytest.approx(expected.statistic), told
            assert told["models"] == 4
    shown = [row for row in printed if row["postgen"] == "cider_d"]
    best = more["study"]["metrics"]["cider_d"]["correlations"]
    assert shown[0]["pregen"] == best[0]["metric"]
    assert {float(row["spearman"]) for row in shown} <= {each["spearman"] for each in best}
    assert (own["idf"], own["study"]["idf"]) == ("stratum", "stratum")


@pytest.mark.parametrize(
    ("query", "status"),
    [("split=none", 404), ("limit=-1", 422)],
)
def test_what_cannot_be_studied_is_refused(client, query, status):
    assert client.get(f"{PLACE}?{query}").status_code == status
    assert client.get("/v1/datasets/nowhere/correlations").status_code == 404
