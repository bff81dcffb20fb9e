"""Estimates and early verdicts.

In process: when a look is taken is planned, and what it says is judged, by rules on the record.
Captions are decoded in the order that they are planned in, so what a verdict spares is still to be
decoded when it comes, however quick the decoding is.
"""

import json

import numpy as np
import pytest
import sqlalchemy as sa

from helpers.fleet import bundle, checkpoint, upload
from helpers.submissions import evaluate, serve_datasets
from service.engine import summaries
from service.engine.tables import run_tasks, task_rows
from service.runs import run_store

IMAGES = 260
QUICK = {"beam": 1, "min_words": 1, "max_words": 12}


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    content = bundle(IMAGES)
    yield from serve_datasets(serve_here, tmp_path_factory, many=content, scored=content)


def _evaluated(service, seed, **more):
    asked = {"dataset": "many/test", "postgen": ["bleu", "cider_d"], "tokenizer": "none", **more}
    with service.client() as client:
        return evaluate(client, checkpoint=upload(client, checkpoint(seed=seed)), **asked)


def _looks(service):
    """What each look said, those of fewer images first."""
    columns = task_rows.c.summary, task_rows.c.summary_id
    query = sa.select(*columns).where(task_rows.c.kind == "look", task_rows.c.status == "done")
    with service.records.reading() as connection:
        rows = [dict(row._mapping) for row in connection.execute(query)]
        summaries.fill_summaries(connection, rows)
    found = [json.loads(row["summary"])["estimate"] for row in rows]
    return sorted(found, key=lambda said: said["cider_d"]["images"])


def _captions(service, evaluation):
    with service.client() as client:
        address = f"/v1/evaluations/{evaluation['id']}/captions?limit=500"
        return [(row["image"], row["caption"]) for row in client.get(address).json()["items"]]


def _count(service, status):
    with service.records.reading() as connection:
        query = sa.select(task_rows.c.key).where(
            task_rows.c.kind == "captions", task_rows.c.status == status
        )
        return len(connection.execute(query).all())


@pytest.mark.long
def test_estimates_end_as_the_scores(service):
    found = _evaluated(service, 0, decoding=QUICK, gates=["cider_d >= 0"])
    assert found["status"] == "succeeded"
    names = ["bleu_1", "bleu_2", "bleu_3", "bleu_4", "cider_d"]
    for name in names:
        value = found["scores"][name]["value"]
        said = {"value": value, "interval": [value, value], "images": IMAGES, "of": IMAGES}
        said["history"] = 0
        assert found["estimate"][name] == said
    looks = _looks(service)
    assert [said["cider_d"]["images"] for said in looks] == [128, 256, IMAGES, IMAGES]
    assert set(looks[0]) == set(names)
    low, high = looks[0]["cider_d"]["interval"]
    assert low < looks[0]["cider_d"]["value"] < high


@pytest.mark.long
def test_captions_are_the_same_in_whatever_order_they_are_decoded(service):
    ordered, plain = (
        _captions(service, _evaluated(service, 0, decoding=QUICK, pregen=given))
        for given in ("all", [])
    )
    assert [image for image, _ in ordered] == [f"{at}.jpg" for at in range(IMAGES)]
    assert len({caption for _, caption in ordered}) > IMAGES / 10
    assert ordered == plain


@pytest.mark.long
def test_a_verdict_that_is_clear_spares_the_rest(service):
    done = _count(service, "done")
    found = _evaluated(service, 2, decoding=QUICK, gates=["cider_d >= 5"], until="verdict")
    assert (found["status"], found["verdict"]) == ("succeeded", "failed")
    tasks = {task["name"]: task["status"] for task in found["tasks"]}
    assert tasks["captions"] == tasks["estimate"] == tasks["cider_d"] == "canceled"
    assert "cider_d" not in found["scores"]
    images = found["estimate"]["cider_d"]["images"]
    assert 100 <= images < IMAGES
    assert _count(service, "canceled") > 1
    assert done < _count(service, "done") < done + IMAGES
    (gate,) = found["gates"]
    assert gate["scores"]["cider_d"]["interval"] == found["estimate"]["cider_d"]["interval"]
    again = _evaluated(service, 2, decoding=QUICK, gates=["cider_d >= 5"], until="verdict")
    assert again["verdict"] == "failed"


@pytest.mark.long
def test_a_margin_that_is_clear_spares_the_rest(service):
    """The first captioner's BLEU-1 is the baseline's; another one, of random words too, is not
    worse by as much as half, which a part of the images tells.
    """
    first = _evaluated(service, 0, decoding=QUICK)
    gate = "not_worse(bleu_1, 0.5)"
    asked = {"decoding": QUICK, "gates": [gate], "baseline": first["id"], "until": "verdict"}
    found = _evaluated(service, 3, **asked)
    assert (found["status"], found["verdict"]) == ("succeeded", "passed")
    tasks = {task["name"]: task["status"] for task in found["tasks"]}
    assert tasks["captions"] == tasks["comparison_bleu"] == "canceled"
    images = found["estimate"]["bleu_1"]["images"]
    assert 100 <= images < IMAGES
    (gate,) = found["gates"]
    assert f"from {images} of {IMAGES} images" in gate["detail"]


def _score_captions(client, seed, images=IMAGES, **more):
    """An evaluation of captions that somebody brought, as a past system."""
    rng = np.random.default_rng(seed)
    said = {
        f"{at}.jpg": " ".join(f"w{word}" for word in rng.integers(2, 50, 6)) for at in range(images)
    }
    asked = {"dataset": "scored/test", "postgen": ["bleu", "cider_d"], "tokenizer": "none"}
    lines = [{"image": image, "caption": caption} for image, caption in said.items()]
    return evaluate(client, captions=lines, **{**asked, **more})


def _inputs_of_order(service, evaluation):
    query = (
        sa.select(task_rows.c.inputs)
        .join(run_tasks, run_tasks.c.task_key == task_rows.c.key)
        .where(run_tasks.c.run_id == evaluation["id"], task_rows.c.kind == "order")
    )
    with service.records.reading() as connection:
        return json.loads(connection.execute(query).scalar_one())


@pytest.mark.long
def test_past_systems_are_used_and_told_where_there_are_enough(service):
    """A part of the split, another tokenizer and the same captions again are no further systems."""
    asked = {"dataset": "scored/test", "decoding": QUICK, "gates": ["cider_d >= 5"]}
    early = {**asked, "until": "verdict"}
    with service.client() as client:
        for seed in range(3):
            _score_captions(client, seed)
        _score_captions(client, 2)
        _score_captions(client, 7, tokenizer="ptb")
        _score_captions(client, 8, images=200, subset=True)
    few = _evaluated(service, 10, **early)
    assert few["estimate"]["cider_d"]["history"] == 0
    assert set(_inputs_of_order(service, few)) == {"columns"}
    with service.client() as client:
        _score_captions(client, 3)
        last = _score_captions(client, 4)
    found = _evaluated(service, 11, **early)
    assert (found["status"], found["verdict"]) == ("succeeded", "failed")
    said = found["estimate"]
    assert said["cider_d"]["history"] == 5
    assert said["bleu_4"]["history"] == 0, "no gate asks for it"
    assert said["cider_d"]["images"] < IMAGES
    inputs = _inputs_of_order(service, found)
    latest = run_store.find_result(service.records, last["id"], "cider_d")
    assert inputs["past.cider_d.0"] == latest
    assert _inputs_of_order(service, _evaluated(service, 10, **asked)).keys() == {"columns"}
    with service.client() as client:
        _score_captions(client, 5)
    again = _evaluated(service, 11, **asked)
    assert _inputs_of_order(service, again) == inputs, "captions keep their order"
    value = again["scores"]["cider_d"]["value"]
    whole = {"value": value, "interval": [value, value], "images": IMAGES, "of": IMAGES}
    assert again["estimate"]["cider_d"] == {**whole, "history": 5}
    fresh = _evaluated(service, 12, **asked)
    assert _inputs_of_order(service, fresh).keys() == {"columns"}, "no early verdict"
