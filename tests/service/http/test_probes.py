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
def test_a_dataset_is_probed_and_its_evaluations_show_what_metrics_are_worth(service):
    with service.client() as client:
        before = _evaluate(client)
        answer = client.post("/v1/probes", json={**REQUEST, "evaluation": before["id"]})
        assert answer.status_code == 202
        identity = answer.json()["id"]
        assert answer.headers["Location"] == f"/v1/probes/{identity}"
        found = _ended(client, identity)
        unusual = _evaluate(client)
        usual = client.post("/v1/probes", json={"dataset": "tiny/test", "metrics": ["bleu_1"]})
        health = _ended(client, usual.json()["id"])["health"]
        after = _evaluate(client)
        again = client.post("/v1/probes", json={**REQUEST, "captions": GIVEN}).json()
        polled = client.get(f"/v1/probes/{identity}")
        same = client.get(
            f"/v1/probes/{identity}", headers={"If-None-Match": polled.headers["ETag"]}
        )
        listed = client.get("/v1/evaluations").json()["items"]
        missing = client.get(f"/v1/evaluations/{identity}")
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
    assert same.status_code == 304
    assert {item["id"][:3] for item in listed} == {"ev_"}
    assert missing.status_code == 404


@pytest.mark.parametrize(
    ("change", "status", "pointer"),
    [
        ({"probes": ["humans"]}, 422, "/probes/0"),
        ({"metrics": ["bleu", "words_used"]}, 422, "/metrics"),
        ({"captions": GIVEN[:3]}, 422, "/captions"),
        ({"captions": GIVEN, "evaluation": "ev_x"}, 422, ""),
        ({"options": {"swaps": [["a"]]}}, 422, "/options/swaps/0"),
    ],
)
def test_what_cannot_be_probed_is_refused_with_its_place(service, change, status, pointer):
    with service.client() as client:
        answer = client.post("/v1/probes", json={**REQUEST, **change})
    assert answer.status_code == status
    pointers = [error["pointer"] for error in answer.json()["errors"]]
    assert pointer is None or any(at.startswith(pointer) for at in pointers) or not pointers


def test_a_metric_that_is_unavailable_is_said_and_the_others_are_probed(service):
    with service.client() as client:
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
