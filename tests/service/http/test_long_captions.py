"""Captions that are longer than what is accepted of people: those of a model, and stored ones."""

import json
from dataclasses import replace

import pytest

from helpers.builders import model, tensors
from helpers.fleet import until_ended, upload
from helpers.submissions import submit
from service.runs import evaluations
from workers.inference import checkpoints


@pytest.fixture
def wordy(client, tmp_path):
    """A captioner whose words have 250 letters."""
    made = model("merge", "gru", tensors("merge", "gru", seed=9))
    edge, unknown, *words = made.description.vocabulary
    long = (edge, unknown, *(word.ljust(250, "x") for word in words))
    made.description = replace(made.description, vocabulary=long)
    checkpoints.write_checkpoint(tmp_path / "model.safetensors", made)
    return upload(client, (tmp_path / "model.safetensors").read_bytes())


def _evaluated(client, **asked):
    return until_ended(client, submit(client, postgen=["bleu"], **asked), 60)


@pytest.mark.parametrize(("words", "status"), [(30, "succeeded"), (60, "failed")])
def test_a_model_writes_no_longer_captions_than_people_may_send(client, wordy, words, status):
    """A caption that is cut would be scored as another one than the model's."""
    decoding = {"beam": 1, "min_words": words, "max_words": words}
    found = _evaluated(client, checkpoint=wordy, pregen=[], decoding=decoding)
    assert found["status"] == status
    if status == "failed":
        (task,) = [task for task in found["tasks"] if task["name"] == "captions"]
        assert task["error"]["code"] == "invalid_checkpoint"
        assert "characters, and at most 10,000 are scored" in task["error"]["detail"]
        assert "max_words" in task["error"]["detail"]


@pytest.fixture
def stored(service, client):
    """An evaluation in whose stored captions one is longer than any that is stored now."""
    captions = [{"image": f"{number}.jpg", "caption": "w3 w4"} for number in range(40)]
    found = _evaluated(client, captions=captions)
    digest = evaluations.find_captions(service.parts, found["id"])
    (path,) = service.blob_files(digest)
    before = path.read_bytes()
    path.chmod(0o600)
    path.write_text(json.dumps([[0, "w3"], [1, "w" * 3_000_000], [2, "w4"]]))
    yield f"/v1/evaluations/{found['id']}/captions"
    path.write_bytes(before)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"params": {"limit": 1, "sort": "bleu_4"}},
        {"params": {"format": "coco"}},
        {"params": {"format": "columns"}},
        {"headers": {"Accept": "text/csv"}},
    ],
    ids=["page", "sorted", "coco", "columns", "csv"],
)
def test_stored_captions_that_cannot_be_read_are_a_problem_and_no_error(client, stored, asked):
    answer = client.get(stored, **asked)
    assert (answer.status_code, answer.json()["code"]) == (404, "blob_damaged"), answer.text
    assert "expected captions of at most 1,048,576 bytes" in answer.json()["detail"]
