"""Files of other programs are told by their content, in a sentence, and never opened."""

import gzip
import io
import json
import os
import pickle
import re

import pytest

from fuzz import edits
from helpers.contract_files import checkpoint
from prescore import foreign
from service.contract.errors import ColumnsRefused, ForeignFormat, InvalidBundle, MetadataInvalid
from service.contract.formats import bundles, checkpoint_header, columns_header, importers
from service.contract.formats.bundles import plain_tar


class _Bomb:
    """Unpickled, it leaves a file."""

    def __reduce__(self):
        return os.mkdir, ("canary",)


def _zip(*names):
    return edits.packed([(name, pickle.dumps(_Bomb())) for name in names], "zip")


LEGACY = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
FILES = {
    "a PyTorch file (a zip with a pickle)": _zip("model/data.pkl", "model/data/0"),
    "a TorchScript program": _zip("m/data/0", "m/data.pkl", "m/code/x.py", "m/constants.pkl"),
    "a program of torch.export (.pt2)": _zip("e/data/w", "e/models/model.json", "e/archive_format"),
    "a PyTorch file (a pickle)": LEGACY + pickle.dumps(_Bomb()),
    "a pickle": pickle.dumps({"a": _Bomb()}),
    "arrays of numpy (.npz)": _zip("a.npy"),
    "an array of numpy (.npy)": b"\x93NUMPY\1\0",
    "a Keras model": _zip("config.json", "model.weights.h5"),
    "a zip with an ONNX model": _zip("decoder.onnx", "prescore.json"),
    "a zip with a Hugging Face model": _zip("config.json", "model.safetensors"),
    "a zip": _zip("readme"),
    "an HDF5 file (of Keras, or features)": b"\x89HDF\r\n\x1a\n" + bytes(99),
    "a GGUF file (of llama.cpp)": b"GGUF\3\0\0\0",
    "a TensorFlow Lite model": b"\x1c\0\0\0TFL3",
    "an ONNX model": b"\x08\x08\x12\x07pytorch\x1a\x052.9.0",
    "a Parquet table": b"PAR1\x15\0",
    "a compressed file": gzip.compress(b"x"),
    "a tar": edits.packed([("captions.jsonl", b"")], "tar"),
    "a web page": b"\n<!DOCTYPE html><title>Sign in</title>",
    "a Git LFS pointer, not the file itself": b"version https://git-lfs.github.com/spec/v1\noid",
    "a JSON list": b' [\n{"image_id": 1, "caption": "a"}]',
    "JSON Lines": b'{"image": "a.jpg"}\n{"image": "b.jpg"}\n',
    "a JSON object": b'{"images": []}',
    "a text in UTF-16": "image,caption\n".encode("utf-16"),
    "a text file": b"import torch\n\nclass Captioner(torch.nn.Module):\n",
}
FOLDERS = {
    "a SavedModel of TensorFlow": ("saved_model.pb",),
    "a folder with an ONNX model": ("decoder.onnx",),
    "a folder with safetensors files": ("epoch-08.safetensors",),
    "a distributed checkpoint of PyTorch": (".metadata", "__0_0.distcp"),
    "a folder": ("x",),
}


@pytest.fixture(autouse=True)
def _no_canary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize("what", FILES)
def test_a_file_is_refused_as_what_it_is(tmp_path, what):
    """As a checkpoint under any name, by the API and by every command."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(FILES[what])
    found = foreign.of_path(path)
    assert found is not None
    assert found.what == what
    with pytest.raises(ForeignFormat) as refused:
        checkpoint_header.read_checkpoint_header(path)
    said = foreign.refusal(found, foreign.CHECKPOINT)
    assert refused.value.detail == said
    assert said.startswith(f"expected {foreign.CHECKPOINT}, found {what}: ")
    assert len(said) < 400
    with pytest.raises(
        ColumnsRefused, match=f"found {re.escape(what)}; deploy/guide/file-formats.md"
    ):
        columns_header.read_columns_header(path)
    if what != "a tar":
        with pytest.raises(InvalidBundle, match="expected a dataset bundle") as bundle:
            list(bundles.read_items(path))
        with pytest.raises(InvalidBundle) as sent, path.open("rb") as stream:
            plain_tar.check_tar_beginning(stream)
        assert sent.value.detail == bundle.value.detail


@pytest.mark.parametrize("what", FOLDERS)
def test_a_folder_is_told_by_its_files(tmp_path, what):
    for name in FOLDERS[what]:
        (tmp_path / name).touch()
    found = foreign.of_path(tmp_path)
    assert (found.what, found.serves) == (what, "")


def test_what_is_right_and_what_is_not_known_is_read_on(tmp_path):
    right = {"checkpoint": checkpoint(), "unknown": b"weights\1" * 100, "empty": b""}
    for name, content in right.items():
        (tmp_path / name).write_bytes(content)
        assert foreign.refusal(foreign.of_path(tmp_path / name), foreign.CHECKPOINT) is None
    checkpoint_header.read_checkpoint_header(tmp_path / "checkpoint")
    assert foreign.of_path(tmp_path / "absent") is None
    for at in (*range(9), *range(14, 27), *range(28, 32), *range(127, 256)):
        assert foreign.of_file(io.BytesIO(bytes([at]) * 9), 9) is None


@pytest.mark.parametrize(
    "content",
    [
        "epoch,loss\n1,2.5\n",
        "一只狗在跑" * 2000,
        "\x1b[1mred\x1b[0m",
        "le chien est très énervé".encode("latin-1"),
    ],
)
@pytest.mark.parametrize("before", ["", "."])
def test_a_text_is_told_wherever_its_beginning_is_cut(content, before):
    """The 4096 bytes that are looked at end within a sign of three bytes."""
    text = content.encode() if isinstance(content, str) else content
    data = before.encode() + text
    assert foreign.of_file(io.BytesIO(data), len(data)) is foreign.TEXT


def test_safetensors_of_others_say_what_is_missing_and_what_to_do(tmp_path):
    header = json.dumps({"__metadata__": {"format": "pt"}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    said = r"missing: prescore.*another program's\? .* name the folder; `prescore convert"
    with pytest.raises(MetadataInvalid, match=said):
        checkpoint_header.read_checkpoint_header(path)


def test_pytorchs_files_are_told_the_command_that_opens_them_and_other_pickles_are_not():
    found = {what: foreign.of_file(io.BytesIO(data), len(data)) for what, data in FILES.items()}
    told = {what for what, each in found.items() if "`prescore convert checkpoint`" in each.do}
    assert told == {"a PyTorch file (a zip with a pickle)", "a PyTorch file (a pickle)"}


def test_a_published_dataset_in_another_format_is_told(tmp_path):
    path = tmp_path / "dataset.json"
    path.write_bytes(FILES["a pickle"])
    with pytest.raises(InvalidBundle, match="found a pickle"):
        next(importers.read_karpathy(path))


@pytest.mark.parametrize("mark", ["config.json", "map.toml", "prescore.json"])
def test_a_folder_of_a_model_of_several_files_may_be_a_checkpoint(tmp_path, mark):
    (tmp_path / mark).touch()
    found = foreign.of_path(tmp_path)
    assert foreign.refusal(found, foreign.CHECKPOINT) is None
    assert foreign.refusal(found, foreign.BUNDLE) is not None
