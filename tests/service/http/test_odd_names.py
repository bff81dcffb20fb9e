"""T55: a name with power over a terminal, a log or a page is refused where it enters, in whatever
file or request it comes, and nothing of the file is stored. The refusal is plain text itself.
"""

import json

import numpy as np
import pytest

from helpers import onnx_bundle_files as onnx_files
from helpers import plugin_packages, tars
from helpers import torch_captioners as of_torch
from helpers.fleet import bundle_of, checkpoint, digest
from helpers.hostile_text import HOSTILE, check_plain
from service.contract.formats.checkpoint_header import FeatureEncoder

ODD = ["a\n::add-mask::b", "a\u202eb", HOSTILE["terminal"][:60]]


def _checkpoint(encoder, _folder):
    return checkpoint(encoder=encoder)


def _state_dict(encoder, _folder):
    named = f"name = {json.dumps(encoder.name)}\ndigest = {json.dumps(encoder.digest)}\n"
    files = {
        "model.pt": of_torch.saved(of_torch.made("init", "lstm")),
        "map.toml": f"{of_torch.map_of('init')}\n[encoder]\n{named}".encode(),
        "vocabulary.json": json.dumps(of_torch.WORDS).encode(),
    }
    return tars.packed(files)


def _onnx(encoder, folder):
    manifest = {**onnx_files.MANIFEST, "encoder": encoder.model_dump()}
    written = onnx_files.write(folder / "model", manifest=manifest)
    return tars.packed_folder(written)


def _plug_in(encoder, _folder):
    return plugin_packages.checkpoint(encoder=encoder.model_dump_json())[0]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("form", [_checkpoint, _state_dict, _onnx, _plug_in])
def test_a_model_whose_encoder_is_called_so_is_refused(client, form, name, tmp_path):
    for at, encoder in enumerate(_both(name)):
        (tmp_path / str(at)).mkdir()
        content = form(encoder, tmp_path / str(at))
        place = f"/v1/checkpoints/{digest(content)}"
        _check_refused(client.put(place, content=content), "encoder")
        assert client.get(place).status_code == 404


@pytest.mark.parametrize("name", ODD)
def test_features_whose_encoder_is_called_so_are_refused(client, name):
    rows = np.ones((2, 5), np.float32)
    for encoder in _both(name):
        data = bundle_of({"a.jpg": ["a b"], "b.jpg": ["b"]}, rows, encoder=encoder)
        _check_refused(client.put("/v1/datasets/odd", content=data), "encoder")
        assert client.get("/v1/datasets/odd").status_code == 404


@pytest.mark.parametrize("name", ODD)
def test_a_label_that_is_called_so_is_refused(client, name):
    captions = [{"image": f"{at}.jpg", "caption": "w3"} for at in range(40)]
    asked = {"captions": captions, "dataset": "tiny/test", "labels": {name: "main"}}
    _check_refused(client.post("/v1/evaluations", json=asked), "labels")


def _both(text):
    return FeatureEncoder(name=text, digest="sha256:0"), FeatureEncoder(name="vgg", digest=text)


def _check_refused(answer, where):
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert where in problem["detail"] + json.dumps(problem.get("errors"))
    for text in (problem["detail"], *(each["detail"] for each in problem.get("errors") or ())):
        check_plain(text)
        assert "\n" not in text
