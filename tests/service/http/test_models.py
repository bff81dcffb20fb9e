"""Metrics by word vectors and by a language model: where there are none, with them, and with others
in their place.

In process: what is there is asked of the folders at home when a task is planned, and by the toolbox
when it begins; the toolbox is a worker's own.
"""

import pytest

from helpers import encoders, object_list_files
from helpers.builders import captions_with_references
from helpers.fleet import bundle_of, until_ended
from helpers.submissions import serve_datasets, submit
from oracles import chair as oracle_of_objects
from service.contract.assets import AssetFolders
from workers.offline import assets

pytestmark = pytest.mark.long

IMAGES = 100
METRICS = ["wmd", "wmd_distance", "wmd_unit", "bertscore", "refscore", "variety"]
WORDS = encoders.WORDS
SAID, PEOPLE = captions_with_references(WORDS, IMAGES, 0)
PEOPLE_OF_IMAGES = {f"{index}.jpg": image for index, image in enumerate(PEOPLE)}


@pytest.fixture(scope="module")
def bare(serve_here, tmp_path_factory):
    """A service that has neither."""
    yield from serve_datasets(serve_here, tmp_path_factory, tiny=bundle_of(PEOPLE_OF_IMAGES))


@pytest.fixture(scope="module")
def equipped(serve_here, tmp_path_factory):
    """A service that has the second layer of a model."""
    for service in serve_datasets(serve_here, tmp_path_factory, tiny=bundle_of(PEOPLE_OF_IMAGES)):
        encoders.make(service.home / "a model", seed=1)
        assets.add_asset("encoder", service.home / "a model", AssetFolders(service.home), layer=2)
        yield service


def _evaluate(client, **more):
    captions = [{"image": f"{at}.jpg", "caption": caption} for at, caption in enumerate(SAID)]
    request = {"captions": captions, "postgen": METRICS, **more}
    found = until_ended(client, submit(client, **request), 60)
    return found, {task["name"]: task for task in found["tasks"]}


def test_without_them_their_metrics_are_unavailable_and_the_others_are_scored(bare):
    with bare.client() as client:
        found, tasks = _evaluate(client, tokenizer="none")
        metrics = {item["name"]: item for item in client.get("/v1/metrics").json()["items"]}
    assert found["status"] == "succeeded"
    assert set(found["scores"]) >= {"caption_length", "words_used", "distinct_1", "entropy_2"}
    assert "wmd" not in found["scores"]
    for name, asset in (("wmd", "word-vectors"), ("wmd_unit", "word-vectors"),
                        ("embedded_references", "minilm"), ("bertscore", "minilm"),
                        ("reference_sentences", "minilm"), ("refscore", "minilm")):  # fmt: skip
        assert tasks[name]["status"] == "unavailable"
        assert f"`prescore assets add {asset}" in tasks[name]["error"]["detail"]
    for name in ("wmd", "bertscore", "refscore"):
        assert metrics[name]["status"] == "unavailable"
    assert metrics["words_used"]["status"] == "available"


def _objects_in(caption):
    return oracle_of_objects.mentions(caption, "cat\ndog\nman\ngrass", {})


def test_objects_are_those_of_the_list_and_another_list_is_another_score(equipped, tmp_path):
    places, path = AssetFolders(equipped.home), tmp_path / "objects.txt"
    with equipped.client() as client:
        bare, tasks = _evaluate(client, postgen=["chair"])
        assert (tasks["chair"]["status"], bare["scores"]) == ("unavailable", {})
        assert "`prescore assets add objects PATH`" in tasks["chair"]["error"]["detail"]
        assets.add_asset("objects", object_list_files.write(path, "cat\ndog\nman\ngrass\n"), places)
        listed = {item["name"]: item for item in client.get("/v1/metrics").json()["items"]}
        assert {listed[name]["status"] for name in ("chair_i", "chair_s")} == {"available"}
        found, _ = _evaluate(client, postgen=["chair"], tokenizer="none")
        rows = client.get(f"/v1/evaluations/{found['id']}/captions").json()["items"]
        assets.add_asset("objects", object_list_files.write(path, "cat\ndog\n"), places)
        other, again = _evaluate(client, postgen=["chair"], tokenizer="none")
    there = [{each for text in image for each in _objects_in(text)} for image in PEOPLE]
    of_all, with_one, shares, _ = oracle_of_objects.chair(list(map(_objects_in, SAID)), there)
    scores = found["scores"]
    assert scores["chair_i"]["value"] == pytest.approx(of_all, rel=1e-12)
    assert scores["chair_s"]["value"] == pytest.approx(with_one, rel=1e-12)
    assert [row["scores"]["chair_i"] for row in rows] == shares
    assert scores["chair_i"]["higher_is_better"] is False
    assert again["chair"]["cached"] is False
    assert other["scores"]["chair_i"]["signature"] != scores["chair_i"]["signature"]


def test_weights_and_baseline_are_as_asked_and_signed(equipped):
    with equipped.client() as client:
        plain, _ = _evaluate(client, postgen=["bertscore", "refscore"])
        asked = {"idf": True, "baseline": 0.25}
        other, tasks = _evaluate(client, postgen=["bertscore", "refscore"], bertscore=asked)
        refused = client.post(
            "/v1/evaluations",
            json={"captions": [], "dataset": "tiny/test", "bertscore": {"baseline": 1}},
        )
    assert tasks["embedded_references"]["cached"] is True
    assert tasks["refscore"]["cached"] is True
    assert "idf:no|baseline:no" in plain["scores"]["bertscore"]["signature"]
    assert "|baseline:0.25|" in other["scores"]["bertscore"]["signature"]
    assert "|idf:refs(n=" in other["scores"]["bertscore"]["signature"]
    assert refused.status_code == 422
    assert "/bertscore/baseline" in {error["pointer"] for error in refused.json()["errors"]}
