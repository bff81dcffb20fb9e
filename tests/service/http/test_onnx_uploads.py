"""ONNX bundles over HTTP: stored as they are, evaluated as they are, refused with a sentence."""

import numpy as np
import pytest

from helpers import onnx_bundle_files as files
from helpers import synthetic_pictures, tokenizer_files
from helpers.fleet import bundle_of, digest
from helpers.tars import packed_folder
from service.contract.metrics import catalogue
from workers.analysis.pregen_intervals import PregenColumns
from workers.inference import columns, scoring
from workers.inference.onnx import captioner

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("sandbox")]

IMAGES = 6
ROWS = np.random.default_rng(3).normal(size=(IMAGES, files.FEATURES)).astype(np.float32)
PREPROCESSING = {"size": {"height": 8, "width": 6}, "resample": 2}
TOP = {"tokens": {"top": 5}}
PEOPLE = {f"{at}.jpg": ["a dog runs fast", "a red dog", "zebra"] for at in range(IMAGES)}


@pytest.fixture(scope="module", autouse=True)
def dataset(service):
    with service.client() as client:
        answer = client.put("/v1/datasets/graphs", content=bundle_of(PEOPLE, ROWS))
        assert answer.status_code == 201, answer.text


def put(client, content):
    return client.put(f"/v1/checkpoints/{digest(content)}", content=content)


def test_a_bundle_is_run_once_and_scores_as_its_graphs_compute(client, tmp_path):
    folder = files.write(tmp_path / "mine")
    content = packed_folder(folder)
    answer = put(client, content)
    assert answer.status_code == 201, answer.text
    found = client.get(f"/v1/checkpoints/{digest(content)}").json()
    assert (found["format"], found["state"], found["architecture"]) == ("onnx", "ready", "onnx")
    assert (found["vocabulary_size"], found["config"]) == (9, None)
    assert (found["inputs"], found["units"]) == ("features", "words")
    assert found["parameters"] == sum(each.size for each in files.arrays().values())
    request = {"dataset": "graphs/test", "checkpoint": digest(content), "pregen": "all"}
    asked = {**request, "postgen": ["bleu_1"], "tokens": {"top": 3}}
    answer = client.post("/v1/evaluations", json=asked)
    assert answer.status_code in (201, 202), answer.text
    place = f"/v1/evaluations/{answer.json()['id']}"
    run = client.get(place).json()
    assert run["status"] == "succeeded", run
    assert 0 <= run["scores"]["bleu_1"]["value"] <= 1
    scores = client.get(f"{place}/pregen").json()["scores"]
    one = captioner.read_onnx_captioner(folder)
    encoded = one.tokens.encode(PEOPLE.values())
    columns = scoring.compute_columns(one, ROWS, encoded)
    one.close()
    expected = PregenColumns.of(columns).scores([*catalogue.PREGEN])
    assert len(expected) == 672
    for name, value in expected.items():
        shown = value if np.isfinite(value) else None
        assert scores[name]["value"] == pytest.approx(shown), name
    told = client.get(f"{place}/tokens/0.jpg").json()["captions"]
    assert [each["word"] for each in told[0]["tokens"]][:4] == ["a", "dog", "runs", "fast"]


def test_a_bundle_that_does_not_run_is_invalid(client, tmp_path):
    step = files.step(
        files.arrays(),
        [*(files.node(*each) for each in files.STEP[:-1]), files.node("MatMul", "h1 P", "scores")],
        [files.tensor("P", np.ones((files.STATE, 8), np.float32))],
    )
    step.graph.output[0].type.tensor_type.ClearField("shape")
    content = packed_folder(files.write(tmp_path / "mine", step=step))
    assert put(client, content).status_code == 201
    found = client.get(f"/v1/checkpoints/{digest(content)}").json()
    assert (found["state"], found["problem"]["code"]) == ("invalid", "invalid_checkpoint")
    assert "expected logits of float32 [2, 9], found" in found["problem"]["detail"]


@pytest.mark.parametrize(
    ("units", "postgen"),
    [("words", []), pytest.param("pieces", ["bleu_1"], marks=pytest.mark.slow)],
)
def test_captions_of_pictures_are_scored_by_words_and_by_pieces(client, units, postgen, tmp_path):
    folder, bundle = tmp_path / "mine", tmp_path / "bundle"
    bundle.mkdir()
    names = synthetic_pictures.write_dataset(bundle, IMAGES)
    answer = client.put("/v1/datasets/pictures", content=packed_folder(bundle))
    assert answer.status_code in (200, 201), answer.text
    files.of_pixels(folder, tokenizer_files.byte_pieces(), PREPROCESSING, (3, 8, 6))
    content = packed_folder(folder)
    put(client, content)
    found = client.get(f"/v1/checkpoints/{digest(content)}").json()
    assert (found["format"], found["state"], found["problem"]) == ("onnx", "ready", None)
    assert (found["inputs"], found["units"], found["encoder"]) == ("pixels", "pieces", None)
    one = captioner.read_onnx_captioner(folder)
    encoded = one.tokens.encode(synthetic_pictures.sentences(IMAGES))
    own = scoring.compute_columns(one, one.inputs(bundle, names), encoded)
    one.close()
    if units == "words":
        own = columns.merge_word_pieces(own, encoded.word_offsets)
    request = {"dataset": "pictures/test", "checkpoint": digest(content), "pregen": "all"}
    asked = {**request, "units": units, "postgen": postgen}
    place = f"/v1/evaluations/{client.post('/v1/evaluations', json=asked).json()['id']}"
    run = client.get(place).json()
    assert run["status"] == "succeeded", run
    scores = client.get(f"{place}/pregen").json()["scores"]
    wanted = PregenColumns.of(own).scores(["sum_sum_prob_none"])
    assert scores["sum_sum_prob_none"]["value"] == pytest.approx(wanted["sum_sum_prob_none"])
    assert f"units:{units}" in scores["sum_sum_prob_none"]["signature"]
    shown = client.get(f"{place}/tokens/{names[0]}").json()["captions"][0]["tokens"]
    said = [each["word"] for each in shown]
    words = [*synthetic_pictures.sentences(IMAGES)[0][0].split(), "<end>"]
    assert said == words if units == "words" else said[-1] == "<end>"
    for changes, pointer in (({"dataset": "graphs/test"}, "/dataset"), (TOP, "/tokens/top")):
        answer = client.post("/v1/evaluations", json={**request, **changes})
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == pointer
