"""Options of the engine, asked for over HTTP and in process: a request is read as a service reads
it, and what it asks for is computed before the answer comes.
"""

import json

import numpy as np
import pytest
import sqlalchemy as sa

from helpers.builders import model, tensors
from helpers.fleet import bundle, bundle_of, checkpoint, digest, upload
from helpers.submissions import evaluate, refuse, serve_datasets
from service.engine.tables import task_rows
from workers.inference import checkpoints

MODEL, DATA = checkpoint(seed=11), bundle(20, seed=3)
HEADLINE = ("mean_max_normcount_prefix0", "perplexity", "mean_join_normcount_filter0")
INSTANT = HEADLINE[0]  # from the prefix walk, which has no precision


def _evaluated(client, **asked):
    """An evaluation of the checkpoint, which has succeeded."""
    return evaluate(client, **{"checkpoint": digest(MODEL), "postgen": [], **asked})


def _tokens(client, evaluation):
    answer = client.get(f"/v1/evaluations/{evaluation['id']}/tokens/7.jpg")
    assert answer.status_code == 200
    return answer.json()["captions"]


def _tasks(service, kind):
    """Their parameters."""
    with service.records.reading() as connection:
        query = sa.select(task_rows.c.parameters).where(task_rows.c.kind == kind)
        return [json.loads(text) for text in connection.execute(query).scalars()]


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    for service in serve_datasets(serve_here, tmp_path_factory, tiny=DATA):
        with service.client() as client:
            upload(client, MODEL)
        yield service


@pytest.fixture
def plain(client):
    """As it is without options."""
    return _evaluated(client)


def test_tokens_that_were_not_asked_for_more_have_one_word_and_no_entropy(client, plain):
    for caption in _tokens(client, plain):
        for token in caption["tokens"]:
            assert token["tops"] == [{"word": token["top"], "logp": token["top_logp"]}]
            assert token["entropy"] is None


def test_more_of_the_tokens_is_a_task_beside_those_of_the_scores_which_stay_as_they_were(
    client, plain
):
    found = _evaluated(client, tokens={"top": 3})
    names = [task["name"] for task in found["tasks"]]
    assert names == [*(task["name"] for task in plain["tasks"]), "tokens"]
    assert all(task["cached"] for task in found["tasks"] if task["name"] != "tokens")
    assert found["scores"] == plain["scores"]
    told = _tokens(client, found), _tokens(client, plain)
    for one, other in zip(*told, strict=True):
        for more, less in zip(one["tokens"], other["tokens"], strict=True):
            assert len(more.pop("tops")) == 3
            assert more == {name: less[name] for name in more}


def test_tokens_are_there_for_who_wants_no_scores(client):
    found = _evaluated(client, pregen=[], tokens={"top": 2})
    assert [task["name"] for task in found["tasks"]] == ["tokens"]
    assert len(_tokens(client, found)[0]["tokens"][0]["tops"]) == 2


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


def test_scores_in_bf16_say_so_in_their_signature_and_are_close(service, client, plain):
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


def test_two_precisions_are_not_compared(client, plain):
    half = _evaluated(client, precision="bf16")
    asked = {"a": plain["id"], "b": half["id"], "metrics": ["perplexity"]}
    refused = client.post("/v1/comparisons", json=asked)
    assert refused.status_code == 422
    assert "not computed alike: fp32" in refused.json()["detail"]
    gated = _evaluated(client, gates=["perplexity <= baseline"], baseline=half["id"])
    assert gated["verdict"] == "not_comparable"


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


CAPTIONS = [{"image": f"{at}.jpg", "caption": "w2 w3"} for at in range(20)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("place", "tasks"),
    [("/v1/evaluations", {"postgen": ["bleu"]}), ("/v1/probes", {"metrics": ["bleu_4"]})],
)
def test_captions_in_cocos_results_format_are_the_same_captions(client, place, tasks):
    """The bundle's ids are 900 and so on."""
    by_id = [{"image_id": 900 + at, "caption": "w2 w3"} for at in range(20)]
    by_name = [{"image": f"{at}.jpg", "caption": "w2 w3"} for at in range(20)]
    for captions in (by_name, by_id):
        asked = {"captions": captions, "dataset": "tiny/test", "tokenizer": "none", **tasks}
        answer = client.post(place, json=asked)
        assert answer.status_code in (201, 202), answer.text
    assert all(task["cached"] for task in answer.json()["tasks"])


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"tokens": {"tops": 2}}, "/tokens/tops"),
        ({"decoding": {"length_power": 5.1}}, "/decoding/length_power"),
        ({"checkpoint": None, "captions": CAPTIONS, "precision": "bf16"}, "/precision"),
        ({"checkpoint": None, "captions": CAPTIONS, "tokens": {}}, "/tokens"),
    ],
)
def test_what_no_engine_could_do_is_refused_with_its_place(client, asked, pointer):
    problem = refuse(client, **{"checkpoint": digest(MODEL), "postgen": [], **asked})
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


def test_probes_swap_the_words_that_a_request_pairs(service, client):
    """Every reference says man; with woman in its place, none is as it was."""
    people = {f"{at}.jpg": ["a man sits", "the man is here", "one man"] for at in range(3)}
    assert client.put("/v1/datasets/men", content=bundle_of(people)).status_code == 201
    asked = {"dataset": "men/test", "probes": ["swap"], "metrics": ["bleu_1"]}
    pairs = {"options": {"swaps": [["man", "woman"]]}}
    begun = client.post("/v1/probes", json={**asked, **pairs})
    assert begun.status_code in (201, 202), begun.text
    found = client.get(f"/v1/probes/{begun.json()['id']}").json()
    assert found["status"] == "succeeded"
    assert _tasks(service, "probe")[-1]["options"] == {"swaps": [["man", "woman"]]}
    assert found["probes"]["swap"]
