"""ONNX bundles over HTTP: stored as they are, evaluated as they are, refused with a sentence."""

import io
import tarfile

import numpy as np
import pytest
from onnx import helper

import onnx_bundle_files as files
from fleet import bundle_of, digest
from prescore.files import models as of_client
from service.contract.metrics import catalogue
from workers.analysis.uncertainty.pregen import Material
from workers.inference import scoring
from workers.inference.onnx import captioner
from workers.sandbox import confinement

pytestmark = [pytest.mark.processes]

IMAGES = 6
ROWS = np.random.default_rng(3).normal(size=(IMAGES, files.FEATURES)).astype(np.float32)
PEOPLE = {f"{at}.jpg": ["a dog runs fast", "a red dog", "zebra"] for at in range(IMAGES)}


@pytest.fixture(autouse=True)
def needs_sandbox():
    if lacking := confinement.missing():
        pytest.skip(lacking)


@pytest.fixture(scope="module", autouse=True)
def dataset(service):
    with service.client() as client:
        answer = client.put("/v1/datasets/graphs", content=bundle_of(PEOPLE, ROWS))
        assert answer.status_code == 201, answer.text


def tar(folder):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for each in sorted(folder.iterdir()):
            archive.add(each, each.name)
    return buffer.getvalue()


def put(client, content):
    return client.put(f"/v1/checkpoints/{digest(content)}", content=content)


def test_a_bundle_is_ready_when_it_is_stored_and_scores_as_its_graphs_compute(client, tmp_path):
    folder = files.write(tmp_path / "mine")
    content = tar(folder)
    answer = put(client, content)
    assert answer.status_code == 201, answer.text
    found = client.get(f"/v1/checkpoints/{digest(content)}").json()
    assert (found["format"], found["state"], found["architecture"]) == ("onnx", "ready", "onnx")
    assert (found["vocabulary_size"], found["config"]) == (9, None)
    assert found["parameters"] == sum(each.size for each in files.arrays().values())
    request = {"dataset": "graphs/test", "checkpoint": digest(content), "pregen": "all"}
    answer = client.post("/v1/evaluations", json={**request, "postgen": ["bleu_1"]})
    assert answer.status_code in (201, 202), answer.text
    place = f"/v1/evaluations/{answer.json()['id']}"
    run = client.get(place).json()
    assert run["status"] == "succeeded", run
    assert 0 <= run["scores"]["bleu_1"]["value"] <= 1
    scores = client.get(f"{place}/pregen").json()["scores"]
    one = captioner.read(folder)
    encoded = one.tokens.encode(PEOPLE.values())
    columns = scoring.columns(one, ROWS, encoded)
    one.close()
    expected = Material.of(columns).scores([*catalogue.PREGEN])
    assert len(expected) == 672
    for name, value in expected.items():
        shown = value if np.isfinite(value) else None
        assert scores[name]["value"] == pytest.approx(shown), name
    told = client.get(f"{place}/tokens/0.jpg").json()["captions"]
    assert [each["word"] for each in told[0]["tokens"]][:4] == ["a", "dog", "runs", "fast"]


def test_a_bundle_that_is_not_accepted_is_refused_with_file_and_node(client, tmp_path):
    step = files.step(files.arrays())
    step.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    answer = put(client, tar(files.write(tmp_path / "mine", step=step)))
    assert answer.status_code == 422
    problem = answer.json()
    assert "step.onnx: operators of 'com.microsoft' are not accepted" in problem["detail"]


def test_a_dataset_of_other_features_is_refused_before_anything_is_computed(client, tmp_path):
    rows = np.ones((IMAGES, 3), np.float32)
    assert client.put("/v1/datasets/narrow", content=bundle_of(PEOPLE, rows)).status_code == 201
    content = tar(files.write(tmp_path / "mine"))
    put(client, content)
    request = {"dataset": "narrow/test", "checkpoint": digest(content)}
    answer = client.post("/v1/evaluations", json=request)
    assert answer.status_code == 422, answer.text


def test_the_client_sends_a_folder_as_a_tar_with_its_graphs(tmp_path):
    folder = files.write(tmp_path / "mine")
    (folder / "notes.txt").write_text("x")
    assert of_client.is_package(folder)
    content = b"".join(of_client.body(folder).chunks())
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        names = sorted(archive.getnames())
    assert names == ["look.onnx", "prescore.json", "step.onnx", "vocabulary.json"]
