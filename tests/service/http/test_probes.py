"""Probes: tables as they come, kept, canceled, and shown beside scores.

In process: rules of runs, and the jobs that a worker calls.
"""

import pytest

from helpers.builders import captions_with_references
from helpers.fleet import bundle_of
from helpers.submissions import evaluate, finish, serve_datasets

WORDS = ["a", "man", "woman", "people", "dog", "runs", "sits", "on", "grass", "big"]
SAID, PEOPLE = captions_with_references(WORDS, 50, 0)
IMAGES = {f"{at}.jpg": ["a dog", *image] for at, image in enumerate(PEOPLE)}
GIVEN = [{"image": image, "caption": said} for image, said in zip(IMAGES, SAID, strict=True)]
REQUEST = {
    "dataset": "tiny/test",
    "probes": ["human", "frequent", "single"],
    "metrics": ["bleu", "cider_d"],
    "tokenizer": "none",
}


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    data = bundle_of(IMAGES, training=["a man runs on grass", "a dog sits", "people"])
    yield from serve_datasets(serve_here, tmp_path_factory, tiny=data)


def _ended(client, identity):
    return finish(client, f"/v1/probes/{identity}")


def _evaluate(client):
    return evaluate(client, captions=GIVEN, postgen=["bleu"], tokenizer="none")


@pytest.mark.long
def test_a_dataset_is_probed_and_its_evaluations_show_what_metrics_are_worth(client):
    before = _evaluate(client)
    answer = client.post("/v1/probes", json={**REQUEST, "evaluation": before["id"]})
    assert answer.status_code == 202
    identity = answer.json()["id"]
    found = _ended(client, identity)
    unusual = _evaluate(client)
    usual = client.post("/v1/probes", json={"dataset": "tiny/test", "metrics": ["bleu_1"]})
    health = _ended(client, usual.json()["id"])["health"]
    after = _evaluate(client)
    again = client.post("/v1/probes", json={**REQUEST, "captions": GIVEN}).json()
    assert found["status"] == "succeeded", found["error"]
    assert list(found["probes"]) == ["human", "frequent", "single"]
    assert [row["name"] for row in found["probes"]["human"]] == ["RvR", "SvR"]
    assert found["probes"]["single"][0]["text"] in ("a man runs on grass", "a dog sits", "people")
    assert set(found["health"]) == {"bleu_1", "bleu_2", "bleu_3", "bleu_4", "cider_d"}
    assert before["health"] is None
    assert unusual["health"] is None
    assert after["health"] == health
    assert {task["cached"] for task in again["tasks"]} == {True}
    assert again["probes"] == found["probes"]


def test_a_swap_of_one_word_is_refused_with_its_place(client):
    answer = client.post("/v1/probes", json={**REQUEST, "options": {"swaps": [["a"]]}})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith("/options/swaps/0")


def test_a_metric_that_is_unavailable_is_said_and_the_others_are_probed(client):
    request = {**REQUEST, "metrics": ["spice", "bleu_4"], "probes": ["human"]}
    mixed = _ended(client, client.post("/v1/probes", json=request).json()["id"])
    request["metrics"] = ["spice"]
    found = _ended(client, client.post("/v1/probes", json=request).json()["id"])
    assert set(mixed["probes"]["human"][0]["scores"]) == {"bleu_4"}
    assert [warning["code"] for warning in mixed["warnings"]] == ["unavailable"]
    assert "CoreNLP 3.6.0" in mixed["warnings"][0]["detail"]
    assert found["status"] == "succeeded"
    assert found["probes"] == {}
    assert found["health"] is None
    assert {task["status"] for task in found["tasks"]} == {"unavailable"}
