"""Estimates and early verdicts.

In process: when a look is taken is planned, and what it says is judged, by rules on the record.
Captions are decoded in the order that they are planned in, so what a verdict spares is still to be
decoded when it comes, however quick the decoding is.
"""

import json

import pytest
import sqlalchemy as sa

from helpers.fleet import bundle, checkpoint, upload
from helpers.submissions import evaluate, serve_datasets
from service.engine import summaries
from service.engine.tables import task_rows

IMAGES = 260
QUICK = {"beam": 1, "min_words": 1, "max_words": 12}


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    yield from serve_datasets(serve_here, tmp_path_factory, many=bundle(IMAGES))


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
