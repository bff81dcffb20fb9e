"""Metrics by word vectors and by a language model: where there are none, with them, and with others
in their place.

In process: what is there is asked of the folders at home when a task is planned, and by the toolbox
when it begins; the toolbox is a worker's own.
"""

import json
from contextlib import contextmanager

import numpy as np
import pytest
import safetensors
from gensim.models import KeyedVectors

from helpers import encoders, object_list_files
from helpers.builders import captions_with_references
from helpers.fleet import bundle_of, until_ended
from helpers.submissions import serve_datasets, submit
from oracles import chair as oracle_of_objects
from service.contract.assets import AssetFolders
from workers.metrics import postgen
from workers.offline import assets

pytestmark = pytest.mark.long

IMAGES = 250
METRICS = ["wmd", "wmd_distance", "wmd_unit", "bertscore", "refscore", "variety"]
WORDS = encoders.WORDS
_, PEOPLE = captions_with_references(WORDS, IMAGES, 0)


@pytest.fixture(scope="module")
def bare(serve_here, tmp_path_factory):
    """A service that has neither."""
    with _with_datasets(serve_here, tmp_path_factory) as service:
        yield service


@pytest.fixture(scope="module")
def equipped(serve_here, tmp_path_factory):
    with _with_datasets(serve_here, tmp_path_factory) as service:
        encoders.make(service.home / "a model", seed=1)
        yield service


@pytest.fixture
def service(equipped, tmp_path):
    """A service that has both: these vectors, and the second layer of `a model`."""
    places = AssetFolders(equipped.home)
    assets.add_asset("word-vectors", _vectors(tmp_path / "vectors.txt"), places)
    assets.add_asset("encoder", equipped.home / "a model", places, layer=2)
    return equipped


@contextmanager
def _with_datasets(serve_here, tmp_path_factory):
    people = {f"{index}.jpg": image for index, image in enumerate(PEOPLE)}
    yield from serve_datasets(serve_here, tmp_path_factory, tiny=bundle_of(people))


def _said(seed=0):
    """Of each image a reference with a word left out; a few have nothing that can be moved."""
    rng = np.random.default_rng(seed)
    said = []
    for index, image in enumerate(PEOPLE):
        words = image[0].split()
        if words:
            words.pop(rng.integers(len(words)))
        said.append("the unheard" if index % 50 == 7 else " ".join(words))
    return said


def _evaluate(client, seed=0, **more):
    captions = [
        {"image": f"{index}.jpg", "caption": caption} for index, caption in enumerate(_said(seed))
    ]
    request = {"captions": captions, "postgen": METRICS, **more}
    found = until_ended(client, submit(client, **request), 60)
    return found, {task["name"]: task for task in found["tasks"]}


def _vectors(path, seed=0, size=8):
    """What gensim writes as word2vec's text."""
    keyed = KeyedVectors(size)
    keyed.add_vectors(
        WORDS, np.random.default_rng(seed).normal(size=(len(WORDS), size)).astype("f4")
    )
    keyed.save_word2vec_format(str(path))
    return path


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


def _holds_all(content, rows, scores):
    """One file by which every corpus score can be had again."""
    file = safetensors.deserialize(content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
    arrays = {
        name: np.frombuffer(entry["data"], np.float64).reshape(entry["shape"])
        for name, entry in file
    }
    assert json.loads(header["images"]) == [row["image"] for row in rows]
    assert json.loads(header["captions"]) == [row["caption"] for row in rows]
    signatures = json.loads(header["signatures"])
    for name in ("wmd", "wmd_unit", "bertscore", "refscore"):
        assert signatures[name] == scores[name]["signature"]
        assert arrays[f"captions/{name}"].tolist() == [row["scores"][name] for row in rows]
        own = {
            at.split("/")[2]: x
            for at, x in arrays.items()
            if at.split("/")[:-1] == ["statistics", name]
        }
        found = postgen.compute_corpus_scores(name, own)[name]
        assert found == scores[name]["value"]


@pytest.mark.slow  # scores: workers/metrics/families/test_bertscore.py and test_wmd.py
def test_with_them_all_are_scored_and_references_are_embedded_once(service):
    with service.client() as client:
        found, tasks = _evaluate(client, tokenizer="none")
        assert {task["status"] for task in tasks.values()} == {"done"}
        rows = client.get(f"/v1/evaluations/{found['id']}/captions").json()["items"]
        whole = client.get(f"/v1/evaluations/{found['id']}/captions?format=columns")
        again, later = _evaluate(client, seed=1, tokenizer="none")
    _holds_all(whole.content, rows, found["scores"])
    distance = found["scores"]["wmd_distance"]
    assert distance["higher_is_better"] is False
    assert "length:stored" in distance["signature"]
    assert "length:unit" in found["scores"]["wmd_unit"]["signature"]
    assert later["reference_sentences"]["cached"] is True
    assert later["embedded_references"]["cached"] is True
    assert later["bertscore"]["cached"] is False
    assert again["scores"]["bertscore"]["value"] != found["scores"]["bertscore"]["value"]


def _objects_in(caption):
    return oracle_of_objects.mentions(caption, "cat\ndog\nman\ngrass", {})


def test_objects_are_those_of_the_list_and_another_list_is_another_score(service, tmp_path):
    places, path = AssetFolders(service.home), tmp_path / "objects.txt"
    with service.client() as client:
        bare, tasks = _evaluate(client, postgen=["chair"])
        assert (tasks["chair"]["status"], bare["scores"]) == ("unavailable", {})
        assert "`prescore assets add objects PATH`" in tasks["chair"]["error"]["detail"]
        assets.add_asset("objects", object_list_files.write(path, "cat\ndog\nman\ngrass\n"), places)
        listed = {item["name"]: item for item in client.get("/v1/metrics").json()["items"]}
        assert {listed[name]["status"] for name in ("chair_i", "chair_s")} == {"available"}
        found, _ = _evaluate(client, postgen=["chair"], tokenizer="none")
        rows = client.get(f"/v1/evaluations/{found['id']}/captions").json()["items"]
        asked = {"dataset": "tiny/test", "probes": ["human"], "metrics": ["chair"]}
        begun = client.post("/v1/probes", json={**asked, "tokenizer": "none"}).json()
        probed = client.get(f"/v1/probes/{begun['id']}", headers={"Prefer": "wait=30"}).json()
        assets.add_asset("objects", object_list_files.write(path, "cat\ndog\n"), places)
        other, again = _evaluate(client, postgen=["chair"], tokenizer="none")
    there = [{each for text in image for each in _objects_in(text)} for image in PEOPLE]
    of_all, with_one, shares, _ = oracle_of_objects.chair(list(map(_objects_in, _said())), there)
    scores = found["scores"]
    assert scores["chair_i"]["value"] == pytest.approx(of_all, rel=1e-12)
    assert scores["chair_s"]["value"] == pytest.approx(with_one, rel=1e-12)
    assert [row["scores"]["chair_i"] for row in rows] == shares
    assert scores["chair_i"]["higher_is_better"] is False
    assert probed["status"] == "succeeded"
    assert 0 < probed["probes"]["human"][0]["scores"]["chair_i"] < 1
    assert again["chair"]["cached"] is False
    assert other["scores"]["chair_i"]["signature"] != scores["chair_i"]["signature"]


def test_weights_and_baseline_are_as_asked_and_signed(service):
    with service.client() as client:
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


@pytest.mark.long
def test_captions_without_blanks_get_a_warning_and_no_meteor(bare):
    chinese = ["一只狗在草地上奔跑。", "两个男人站在海边，望着远方。"]
    images = {"a.jpg": chinese, "b.jpg": chinese[::-1]}
    with bare.client() as client:
        assert client.put("/v1/datasets/chinese", content=bundle_of(images)).status_code == 201
        captions = [{"image": image, "caption": people[0]} for image, people in images.items()]
        asked = {"dataset": "chinese/test", "captions": captions, "postgen": ["bleu_1", "meteor"]}
        answer = client.post("/v1/evaluations", json=asked)
        assert "no_words_found" in [one["code"] for one in answer.json()["warnings"]]
        found = until_ended(client, answer.json()["id"], 60)
    assert found["status"] == "succeeded"
    tasks = {task["name"]: task["status"] for task in found["tasks"]}
    assert (tasks["bleu"], tasks["meteor"]) == ("done", "unavailable")
    told = {one["code"]: one["detail"] for one in found["warnings"]}
    assert 'ask for the tokenizer "none"' in told["no_words_found"]
    assert told["unavailable"].startswith("meteor: meteor is for English: ")
