"""What an evaluation does not have is told with the reason, and whether it is still to come; so are
captions that are longer than what is accepted of people: those of a model, and stored ones.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from helpers.builders import model, tensors
from helpers.fleet import checkpoint, until_ended, upload
from helpers.submissions import submit
from service.runs import evaluations
from workers.inference import checkpoints

SAID = [{"image": f"{at}.jpg", "caption": "w2"} for at in range(40)]
QUICK = {"beam": 1, "min_words": 1, "max_words": 3}


def _evaluated(client, **asked):
    return submit(client, **{"tokenizer": "none", "decoding": QUICK, **asked})


def _lacks(client, identity, of):
    answer = client.get(f"/v1/evaluations/{identity}/{of}")
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith(f"{identity} has no ")
    return answer.json()["detail"].partition(" has no ")[2]


def test_columns_that_were_not_asked_for_are_told(client):
    model_ = upload(client, checkpoint(seed=31))
    captions = _evaluated(client, checkpoint=model_, pregen=[], postgen=["bleu"])
    assert _lacks(client, captions, "tokens/0.jpg") == "columns: it was not asked for"


@pytest.mark.parametrize(("of", "what"), [("tokens/0.jpg", "columns"), ("captions", "captions")])
def test_what_is_still_to_come_and_what_never_comes_are_told_apart(service, client, of, what):
    model_ = upload(client, checkpoint(seed=32))
    with service.held():
        identity = _evaluated(client, checkpoint=model_, postgen=["bleu"], decoding={"beam": 2})
        assert _lacks(client, identity, of) == f"{what} yet: its task {what} is ready"
        assert client.post(f"/v1/evaluations/{identity}/cancel").status_code == 202
        assert _lacks(client, identity, of) == f"{what}: it was canceled before"


def test_a_task_that_failed_is_told_with_its_error(client, tmp_path):
    arrays = tensors("merge", "gru", seed=33)
    arrays["output.bias"][:] = np.nan
    path = tmp_path / "broken.safetensors"
    checkpoints.write_checkpoint(path, model("merge", "gru", arrays))
    identity = _evaluated(client, checkpoint=upload(client, path.read_bytes()), postgen=["bleu"])
    for of, task in (("tokens/0.jpg", "columns"), ("captions", "captions")):
        told = _lacks(client, identity, of)
        assert told.startswith(f"{task}: its task {task} failed: ")
        assert "output.bias" in told


def test_a_comparison_tells_which_score_is_lacking_and_why(client):
    two = [_evaluated(client, captions=SAID, postgen=[name]) for name in ("bleu", "rouge_l")]
    asked = {"a": two[0], "b": two[1]}
    found = client.post("/v1/comparisons", json={**asked, "metrics": ["rouge_l"]}).json()
    assert found["detail"] == f"{two[0]} has no score rouge_l: it was not asked for"
    found = client.post("/v1/comparisons", json=asked).json()
    assert found["detail"] == f"{two[0]} and {two[1]} have no score in common"


@pytest.fixture
def wordy(client, tmp_path):
    """A captioner whose words have 250 letters."""
    made = model("merge", "gru", tensors("merge", "gru", seed=9))
    edge, unknown, *words = made.description.vocabulary
    long = (edge, unknown, *(word.ljust(250, "x") for word in words))
    made.description = replace(made.description, vocabulary=long)
    checkpoints.write_checkpoint(tmp_path / "model.safetensors", made)
    return upload(client, (tmp_path / "model.safetensors").read_bytes())


@pytest.mark.parametrize(("words", "status"), [(30, "succeeded"), (60, "failed")])
def test_a_model_writes_no_longer_captions_than_people_may_send(client, wordy, words, status):
    """A caption that is cut would be scored as another one than the model's."""
    decoding = {"beam": 1, "min_words": words, "max_words": words}
    identity = _evaluated(client, checkpoint=wordy, postgen=["bleu"], decoding=decoding)
    found = until_ended(client, identity, 60)
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
    identity = _evaluated(client, captions=captions, postgen=["bleu"])
    until_ended(client, identity, 60)
    digest = evaluations.find_captions(service.parts, identity)
    (path,) = service.blob_files(digest)
    before = path.read_bytes()
    path.chmod(0o600)
    path.write_text(json.dumps([[0, "w3"], [1, "w" * 3_000_000], [2, "w4"]]))
    yield f"/v1/evaluations/{identity}/captions"
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
