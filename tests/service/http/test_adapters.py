"""Adapters over HTTP: uploaded alone, and scored as a folder with the merged weights."""

import math
import shutil

import pytest
from safetensors.torch import load_file, save_file

from helpers import adapter_folders, synthetic_pictures
from helpers import vision_language_folders as folders
from helpers.fleet import digest
from helpers.submissions import store_checkpoint, submit
from helpers.tars import packed_folder
from workers.offline import assets

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.usefixtures("sandbox")]

STORED = "language_model.model.layers.1.mlp.up_proj.weight"
LAYERS = {"model.language_model.layers.1.mlp.up_proj": (48, 32)}


@pytest.fixture(scope="module")
def base(service, tmp_path_factory):
    """The folder of a registered base; its dataset is there."""
    folder = tmp_path_factory.mktemp("bundle")
    synthetic_pictures.write_dataset(folder, 6)
    with service.client() as client:
        assert client.put("/v1/datasets/seen", content=packed_folder(folder)).status_code == 201
    saved = folders.save_model(tmp_path_factory.mktemp("m") / "base", "llava")
    assets.add_base("tiny", saved.folder, service.parts.places)
    return saved.folder


def _adapter(tmp_path, name="a", **changes):
    folder = adapter_folders.write(tmp_path / name, adapter_folders.make_pairs(LAYERS), **changes)
    return packed_folder(folder)


def _score(client, checkpoint, **asked):
    request = {"dataset": "seen/test", "checkpoint": checkpoint, "postgen": ["bleu_1"], **asked}
    run = client.get(f"/v1/evaluations/{submit(client, **request)}").json()
    assert run["status"] == "succeeded", run["tasks"]
    pregen = client.get(f"/v1/evaluations/{run['id']}/pregen").json()["scores"]
    values = {name: score["value"] for name, score in {**run["scores"], **pregen}.items()}
    return {name: math.inf if value is None else value for name, value in values.items()}


@pytest.mark.slow  # on a base that stays open: tests/workers/inference/huggingface
def test_it_is_scored_as_the_folder_with_the_merged_weights(client, base, tmp_path):
    content = _adapter(tmp_path)
    found = store_checkpoint(client, content)
    assert (found["format"], found["state"], found["problem"]) == ("adapter", "ready", None)
    assert (found["base"]["name"], found["units"]) == ("tiny", "pieces")
    merged = shutil.copytree(base, tmp_path / "merged")
    tensors = load_file(merged / "model.safetensors")
    ((a, b),) = adapter_folders.make_pairs(LAYERS).values()
    (stored,) = (name for name in tensors if name.endswith(STORED))
    tensors[stored] = tensors[stored] + 5 / 3 * (b @ a)
    save_file(tensors, merged / "model.safetensors")
    whole = packed_folder(merged)
    store_checkpoint(client, whole)
    assert len(content) < len(whole) / 10
    scores = _score(client, digest(content))
    assert scores == pytest.approx(_score(client, digest(whole)), rel=1e-5, abs=0)
    assert scores["perplexity"] != _score(client, _store(client, packed_folder(base)))["perplexity"]


def _store(client, content):
    store_checkpoint(client, content)
    return digest(content)


def test_a_base_by_another_name_is_asked_for(client, base, tmp_path):
    content = _adapter(tmp_path, base_model_name_or_path="acme/unheard-of")
    found = store_checkpoint(client, content)
    assert (found["state"], found["problem"]["code"]) == ("invalid", "unavailable")
    request = {"dataset": "seen/test", "checkpoint": digest(content)}
    refused = client.post("/v1/evaluations", json=request)
    assert refused.status_code == 422, refused.text
    assert "registered: tiny. Name the base" in refused.json()["detail"]
    assert _score(client, digest(content), base="tiny")


def test_one_of_another_base_is_invalid_by_the_name_of_a_tensor(client, base, tmp_path):
    pairs = adapter_folders.make_pairs({"model.language_model.layers.9.mlp.up_proj": (48, 32)})
    content = packed_folder(adapter_folders.write(tmp_path / "other", pairs))
    found = store_checkpoint(client, content)
    assert (found["state"], found["problem"]["code"]) == ("invalid", "invalid_checkpoint")
    assert "layers.9.mlp.up_proj.weight: expected one of this name" in found["problem"]["detail"]
