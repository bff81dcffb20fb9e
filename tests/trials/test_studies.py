"""A study of real evaluations through a real service, beside scipy's numbers of their scores."""

import csv

import pytest
from scipy import stats

from fleet import checkpoint, until, until_ended, upload

PLACE = "/v1/datasets/tiny/correlations"


def _evaluate(client, seed):
    request = {
        "checkpoint": upload(client, checkpoint(seed)),
        "dataset": "tiny/test",
        "postgen": ["cider_d", "bleu"],
        "tokenizer": "none",
        "decoding": {"beam": 1},
    }
    identity = client.post("/v1/evaluations", json=request).json()["id"]
    ended = until_ended(client, identity, 90)
    assert ended["status"] == "succeeded", ended["error"]
    return identity


def _studied(client, models, query=""):
    def found():
        answer = client.get(f"{PLACE}?{query}").json()
        study = answer["study"]
        return answer if study and len(study["evaluations"]) == models else None

    return until(found, 60, f"a study of {models} models")


def test_a_study_follows_the_evaluations_of_its_split(fleet):
    with fleet.client() as client:
        ids = [_evaluate(client, seed) for seed in range(3)]
        first = client.get(PLACE)
        found = _studied(client, 3)
        sheet = client.get(PLACE, headers={"Accept": "text/csv"})
        own = _studied(client, 3, "idf=stratum&limit=1")
        ids.append(_evaluate(client, 3))
        again = client.get(PLACE).json()
        more = _studied(client, 4)
        scores = {name: client.get(f"/v1/evaluations/{name}").json()["scores"] for name in ids}
        pregen = {
            name: client.get(f"/v1/evaluations/{name}/pregen").json()["scores"] for name in ids
        }
        evaluations = client.get("/v1/evaluations").json()["items"]
    assert first.headers["Retry-After"] == "1"
    assert first.json()["under_way"]["progress"]["total"] == 3
    assert (found["under_way"], found["study"]["rows"]) == (None, 45)
    assert again["study"]["evaluations"] == found["study"]["evaluations"]
    assert set(more["study"]["evaluations"]) == set(ids)
    assert set(more["study"]["metrics"]) == {"cider_d", "bleu_1", "bleu_2", "bleu_3", "bleu_4"}
    for name in ("cider_d", "bleu_1"):
        values = [scores[each][name]["value"] for each in ids]
        for told in more["study"]["metrics"][name]["correlations"]:
            x = [pregen[each][told["metric"]]["value"] for each in ids]
            expected = stats.spearmanr(x, values)
            assert told["spearman"] == pytest.approx(expected.statistic), told
            assert told["models"] == 4
    rows = list(csv.DictReader(sheet.text.splitlines()))
    assert len(rows) == 5 * found["study"]["pregen"]["remain"]
    assert own["study"]["idf"] == "stratum"
    assert {each["id"][:3] for each in evaluations} == {"ev_"}


@pytest.mark.parametrize(
    ("query", "status"),
    [("split=none", 404), ("idf=subset", 422), ("limit=-1", 422), ("limit=many", 422)],
)
def test_what_cannot_be_studied_is_refused(client, query, status):
    assert client.get(f"{PLACE}?{query}").status_code == status
    assert client.get("/v1/datasets/nowhere/correlations").status_code == 404
