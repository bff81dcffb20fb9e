"""Options of the engine, asked for over HTTP and in process: a request is read as a service reads
it, and what it asks for is computed before the answer comes.
"""

import json

import numpy as np
import pytest
import sqlalchemy as sa

from helpers.builders import model, tensors
from helpers.fleet import checkpoint, upload
from helpers.submissions import evaluate
from service.engine.tables import task_rows
from workers.inference import checkpoints

MODEL = checkpoint(seed=11)
HEADLINE = ("mean_max_normcount_prefix0", "perplexity", "mean_join_normcount_filter0")
INSTANT = HEADLINE[0]  # from the prefix walk, which has no precision


def _evaluated(client, **asked):
    """An evaluation of the checkpoint, which has succeeded."""
    return evaluate(client, **{"checkpoint": upload(client, MODEL), "postgen": [], **asked})


def _tasks(service, kind):
    """Their parameters."""
    with service.records.reading() as connection:
        query = sa.select(task_rows.c.parameters).where(task_rows.c.kind == kind)
        return [json.loads(text) for text in connection.execute(query).scalars()]


@pytest.mark.long
def test_a_checkpoints_columns_are_cached_when_they_are_those_that_all_share(client):
    """Neither those of another precision nor those with more words are."""
    own = {"checkpoint": upload(client, checkpoint(seed=12))}

    def cached():
        return client.get(f"/v1/checkpoints/{own['checkpoint']}").json()["cached"]

    _evaluated(client, **own, precision="bf16", tokens={"top": 2})
    assert cached() == []
    _evaluated(client, **own)
    assert cached() == [{"dataset": "tiny@v1/test", "columns": True, "features": False}]


def test_scores_in_bf16_say_so_in_their_signature_and_are_close(service, client):
    plain = _evaluated(client)
    found = _evaluated(client, precision="bf16")
    assert {"split": "test", "precision": "bf16"} in _tasks(service, "columns")
    for name in HEADLINE:
        here, there = found["scores"][name], plain["scores"][name]
        assert here["value"] == pytest.approx(there["value"], rel=0.02)
        if name == INSTANT:
            assert here == there
        else:
            assert here["signature"] == "pregen|columns|bf16|v:1"
            assert there["signature"] == "pregen|columns|fp32|v:1"
    assert found["scores"]["perplexity"]["value"] != plain["scores"]["perplexity"]["value"]


def _forgetful(tmp_path):
    """A checkpoint that says END with .3, w2 with .6 and each of two others with .05, always."""
    arrays = tensors("init", "gru", words=4)
    arrays["output.weight"][:] = 0
    arrays["output.bias"] = np.log([0.3, 0.05, 0.6, 0.05]).astype(np.float32)
    checkpoints.write_checkpoint(tmp_path / "model", model("init", "gru", arrays))
    return (tmp_path / "model").read_bytes()


@pytest.mark.long
def test_captions_are_searched_as_the_length_power_says(service, client, tmp_path):
    """By hand, with two places in the beam and at most three words. By probability nothing at all
    (.3) is better than w2 w2 w2 (.216); by the mean of its words it is worse (.3, and .6).
    """
    own = upload(client, _forgetful(tmp_path))
    search = {"beam": 2, "min_words": 0, "max_words": 3}

    def said(**more):
        asked = {"checkpoint": own, "pregen": [], "postgen": ["bleu"]}
        found = _evaluated(client, **asked, decoding={**search, **more})
        page = client.get(f"/v1/evaluations/{found['id']}/captions").json()
        return {item["caption"] for item in page["items"]}

    assert said() == {""}
    assert said(length_power=0) == {""}
    assert said(length_power=1) == {"w2 w2 w2"}
    kept = [each["decoding"] for each in _tasks(service, "captions")]
    assert kept == [{**search, "unk": False}, {**search, "unk": False, "length_power": 1.0}]
