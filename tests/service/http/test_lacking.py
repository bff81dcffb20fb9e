"""What an evaluation does not have is told with the reason, and whether it is still to come."""

import numpy as np
import pytest

from helpers.builders import model, tensors
from helpers.fleet import checkpoint, upload
from helpers.submissions import submit
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


def test_captions_that_were_sent_have_no_columns(client):
    identity = _evaluated(client, captions=SAID, postgen=["bleu"])
    told = "columns: its captions were sent, without a checkpoint"
    assert _lacks(client, identity, "tokens/0.jpg") == told


def test_what_was_not_asked_for_is_told(client):
    model_ = upload(client, checkpoint(seed=31))
    captions = _evaluated(client, checkpoint=model_, pregen=[], postgen=["bleu"])
    assert _lacks(client, captions, "tokens/0.jpg") == "columns: it was not asked for"
    scores = _evaluated(client, checkpoint=model_, postgen=[])
    assert _lacks(client, scores, "captions") == "captions: it was not asked for"


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
