"""Metrics by word vectors and by a language model: where there are none, with them, and with others
in their place. Oracles: gensim, and the engine asked directly.

In process: what is there is asked of the folders at home when a task is planned, and by the toolbox
when it begins; the toolbox is a worker's own.
"""

import json
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import safetensors
from gensim.models import KeyedVectors

import encoders
import listed_objects
from builders import captions_with_references
from fleet import bundle, bundle_of, checkpoint, until_ended, upload
from oracles import chair as oracle_of_objects
from oracles import sentences as oracle
from service.contract.assets import AssetFolders
from workers.metrics import postgen, references
from workers.metrics.families import bertscore
from workers.metrics.families.wmd import STOP_WORDS
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import nneval
from workers.metrics.learned.network import HumanClassifier
from workers.metrics.tokens import tokenize
from workers.metrics.vectors import text_encoder
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
    assets.add_asset("word-vectors", _vectors(tmp_path / "vectors.txt")[1], places)
    assets.add_asset("encoder", equipped.home / "a model", places, layer=2)
    return equipped


@contextmanager
def _with_datasets(serve_here, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("a home")) as service:
        people = {f"{index}.jpg": image for index, image in enumerate(PEOPLE)}
        with service.client() as client:
            for name, data in (("tiny", bundle_of(people)), ("seen", bundle(20))):
                assert client.put(f"/v1/datasets/{name}", content=data).status_code == 201
        yield service


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
    request = {"captions": captions, "dataset": "tiny/test", "postgen": METRICS, **more}
    identity = client.post("/v1/evaluations", json=request).json()["id"]
    found = until_ended(client, identity, 60)
    return found, {task["name"]: task for task in found["tasks"]}


def _vectors(path, seed=0, size=8):
    """What gensim writes as word2vec's text."""
    keyed = KeyedVectors(size)
    keyed.add_vectors(
        WORDS, np.random.default_rng(seed).normal(size=(len(WORDS), size)).astype("f4")
    )
    keyed.save_word2vec_format(str(path))
    return KeyedVectors.load_word2vec_format(str(path)), path


def _gensim(keyed, captions, *, unit):
    def kept(text):
        return [word for word in text.split() if word not in STOP_WORDS]

    return [
        min(keyed.wmdistance(kept(caption), kept(text), norm=unit) for text in image)
        for caption, image in zip(captions, PEOPLE, strict=True)
    ]


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


def test_without_its_files_spice_is_unavailable_and_the_evaluation_succeeds(bare):
    with bare.client() as client:
        found, tasks = _evaluate(client, tokenizer="none", postgen=["spider", "cider_d"])
        metrics = {item["name"]: item for item in client.get("/v1/metrics").json()["items"]}
    assert found["status"] == "succeeded"
    assert list(found["scores"]) == ["cider_d"]
    (warning,) = (each for each in found["warnings"] if each["code"] == "unavailable")
    assert warning["image"] is None
    assert warning["detail"] == f"spider: {tasks['spider']['error']['detail']}"
    assert tasks["spice"]["error"]["detail"] in warning["detail"]
    for name in ("reference_tuples", "tuples", "spice", "spider"):
        assert tasks[name]["status"] == "unavailable"
        assert tasks[name]["error"]["code"] == "unavailable"
        assert "`prescore assets add DIR`" in tasks[name]["error"]["detail"]
    for name in ("spice", "spider"):
        assert metrics[name]["status"] == "unavailable"
        assert "CoreNLP 3.6.0" in metrics[name]["reason"]
    assert metrics["cider_d"]["status"] == "available"


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


@pytest.mark.slow  # scores: workers/metrics/families/test_bertscore.py
def test_with_them_scores_are_the_peers_own_and_references_are_embedded_once(service, tmp_path):
    keyed, _ = _vectors(tmp_path / "the same vectors.txt")
    with service.client() as client:
        found, tasks = _evaluate(client, tokenizer="none")
        assert {task["status"] for task in tasks.values()} == {"done"}
        rows = client.get(f"/v1/evaluations/{found['id']}/captions").json()["items"]
        whole = client.get(f"/v1/evaluations/{found['id']}/captions?format=columns")
        again, later = _evaluate(client, seed=1, tokenizer="none")
    captions = _said()
    _holds_all(whole.content, rows, found["scores"])
    for name, unit in (("wmd", False), ("wmd_unit", True)):
        expected = np.array(_gensim(keyed, captions, unit=unit))
        assert 0 < np.isinf(expected).sum() < IMAGES / 4
        got = [row["scores"][f"{name}_distance"] for row in rows]
        got = np.array([np.inf if value is None else value for value in got])
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
        assert found["scores"][name]["value"] == pytest.approx(np.exp(-expected).mean(), rel=1e-12)
    distance = found["scores"]["wmd_distance"]
    assert distance["higher_is_better"] is False
    assert "length:stored" in distance["signature"]
    assert "length:unit" in found["scores"]["wmd_unit"]["signature"]
    reader = text_encoder.read_encoder(service.home / "a model", 2)
    embedded = bertscore.prepare(PEOPLE, reader)
    direct = bertscore.measure_captions(captions, range(IMAGES), embedded, reader)
    got = [row["scores"]["bertscore"] for row in rows]
    np.testing.assert_allclose(got, direct.captions["bertscore"], atol=1e-6)
    reference = oracle.Model(service.home / "a model", 2)
    pairs = list(zip(captions, PEOPLE, strict=True))[:20]
    expected = [oracle.score(reference, caption, people) for caption, people in pairs]
    got = [row["scores"]["refscore"] for row in rows[:20]]
    np.testing.assert_allclose(got, expected, atol=2e-6)
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
        assets.add_asset("objects", listed_objects.write(path, "cat\ndog\nman\ngrass\n"), places)
        listed = {item["name"]: item for item in client.get("/v1/metrics").json()["items"]}
        assert {listed[name]["status"] for name in ("chair_i", "chair_s")} == {"available"}
        found, _ = _evaluate(client, postgen=["chair"], tokenizer="none")
        rows = client.get(f"/v1/evaluations/{found['id']}/captions").json()["items"]
        asked = {"dataset": "tiny/test", "probes": ["human"], "metrics": ["chair"]}
        begun = client.post("/v1/probes", json={**asked, "tokenizer": "none"}).json()
        probed = client.get(f"/v1/probes/{begun['id']}", headers={"Prefer": "wait=30"}).json()
        assets.add_asset("objects", listed_objects.write(path, "cat\ndog\n"), places)
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


def test_other_vectors_or_another_layer_are_another_score(service, tmp_path):
    places = AssetFolders(service.home)
    with service.client() as client:
        before, _ = _evaluate(client, tokenizer="none")
        assets.add_asset("word-vectors", _vectors(tmp_path / "vectors.txt", seed=5)[1], places)
        assets.add_asset("encoder", service.home / "a model", places, layer=1)
        after, tasks = _evaluate(client, tokenizer="none")
    for name in ("wmd", "bertscore", "refscore"):
        assert tasks[name]["cached"] is False
        assert after["scores"][name]["value"] != before["scores"][name]["value"]
        assert after["scores"][name]["signature"] != before["scores"][name]["signature"]
    assert tasks["variety"]["cached"] is True


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


def test_a_checkpoints_own_captions_are_scored_by_them(service):
    """None of its words has a vector."""
    with service.client() as client:
        request = {
            "checkpoint": upload(client, checkpoint()),
            "dataset": "seen/test",
            "pregen": [],
            "postgen": ["wmd", "bertscore", "variety"],
        }
        identity = client.post("/v1/evaluations", json=request).json()["id"]
        found = until_ended(client, identity, 60)
    assert found["status"] == "succeeded"
    assert set(found["scores"]) >= {"wmd", "bertscore", "caption_length"}
    assert found["scores"]["wmd"]["value"] == 0


@pytest.mark.slow
def test_a_learned_metric_is_the_shipped_one_or_the_teams_own(service, tmp_path):
    with service.client() as client:
        shipped, _ = _evaluate(client, postgen=["nneval"])
        rows = client.get(f"/v1/evaluations/{shipped['id']}/captions").json()["items"]
        other, tasks = _evaluate(client, postgen=["nneval"], tokenizer="none")
        own = nneval.load_shipped_nneval()
        others = [(weights * 0.9, biases) for weights, biases in own.classifier.layers]
        own = replace(own, classifier=HumanClassifier(others))
        nneval.write_nneval(tmp_path / "own.safetensors", own)
        assets.add_asset("learned", tmp_path / "own.safetensors", AssetFolders(service.home))
        changed, _ = _evaluate(client, postgen=["nneval"])
    with Jvm() as jvm:
        prepared = references.prepare_references(PEOPLE, "ptb", jvm)
        captions = _said()
        tokens = tokenize(captions, "ptb", jvm)
        rows_of = np.arange(IMAGES)
        direct = postgen.score_tokens(
            "nneval", tokens, prepared, rows_of, jvm, model=nneval.load_shipped_nneval()
        )
    assert [row["scores"]["nneval"] for row in rows] == direct.captions["nneval"].tolist()
    found = shipped["scores"]["nneval"]
    assert (found["value"], found["signature"]) == (
        direct.corpus["nneval"],
        direct.signatures["nneval"],
    )
    assert tasks["nneval"]["status"] == "unavailable"
    assert "trained with the tokenizer 'ptb'" in tasks["nneval"]["error"]["detail"]
    assert "nneval" not in other["scores"]
    assert changed["scores"]["nneval"]["signature"] != found["signature"]
    assert changed["scores"]["nneval"]["value"] != found["value"]


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
