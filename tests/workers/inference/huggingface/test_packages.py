"""Folders, tars and zips; and what is wrong with a folder that only its tensors tell."""

import json
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from helpers import huggingface_folders as folders
from helpers import synthetic_pictures
from service.contract.errors import (
    InvalidCheckpoint,
    InvalidPackage,
    OutOfMemory,
    UnusableCheckpoint,
)
from workers.conversion import verification
from workers.inference import checkpoints, scoring
from workers.sandbox import operations


def _columns(path):
    model = checkpoints.open_captioner(path)
    pictures = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3)).astype(np.uint8)
    return scoring.compute_columns(
        model, pictures, model.tokens.encode(synthetic_pictures.sentences(4))
    ).logp


def _pack(folder, target):
    inside = [path for path in sorted(folder.iterdir()) if path.is_file()]
    if target.suffix == ".tar":
        with tarfile.open(target, "w") as tar:
            for path in inside:
                tar.add(path, f"model/{path.name}")
    else:
        method = zipfile.ZIP_DEFLATED if "deflated" in target.name else zipfile.ZIP_STORED
        with zipfile.ZipFile(target, "w", method) as packed:
            for path in inside:
                packed.write(path, path.name)
    return target


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved("vit-gpt2", trained=False).folder, tmp_path / "copy")


def _fine_tuned(one, folder):
    """As recipes leave it: the library itself writes the copy of the decoder's vocabulary size."""
    library = type(one.library).from_pretrained(folder)
    library.config.vocab_size = library.config.decoder.vocab_size
    library.save_pretrained(folder)
    assert "vocab_size" in json.loads((folder / "config.json").read_text())
    return folder


def _in_parts(one, folder):
    (folder / "model.safetensors").unlink()
    one.library.save_pretrained(folder, max_shard_size="40KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 2
    return folder


def _packed(name):
    return lambda _, folder: _pack(folder, folder.with_name(name))


@pytest.mark.parametrize(
    "make",
    [_packed("m.tar"), _packed("stored.zip"), _packed("deflated.zip"), _fine_tuned, _in_parts],
)
def test_the_same_model_in_another_form_gives_the_same_bits(make, saved, tmp_path):
    one = saved("vit-gpt2", trained=True)
    other = make(one, shutil.copytree(one.folder, tmp_path / "copy"))
    np.testing.assert_array_equal(_columns(other), _columns(one.folder))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halved_weights_are_computed_in_float32(dtype, copy):
    path = copy / "model.safetensors"
    rounded = {name: each.to(dtype) for name, each in load_file(path).items()}
    save_file(rounded, path)
    halved = _columns(copy)
    save_file({name: each.float() for name, each in rounded.items()}, path)
    np.testing.assert_array_equal(halved, _columns(copy))


def test_weights_that_are_not_finite_are_refused(copy):
    tensors = load_file(copy / "model.safetensors")
    tensors["decoder.transformer.ln_f.bias"][3] = torch.nan
    save_file(tensors, copy / "model.safetensors")
    with pytest.raises(UnusableCheckpoint, match=r"ln_f\.bias: 1 of 24 values is not a finite"):
        checkpoints.open_captioner(copy)


@pytest.mark.parametrize(
    ("name", "shape", "told"),
    [
        ("decoder.transformer.wte.weight", None, "2 missing, as decoder.lm_head.weight"),
        ("decoder.adapter.weight", (8, 8), "1 unexpected, as decoder.adapter.weight"),
        ("decoder.transformer.wte.weight", (3, 24), "1 mismatched, as .*wte.weight"),
        ("decoder.transformer.h.0.attn.bias", (1, 1, 24, 24), None),  # as older versions saved it
        ("encoder.pooler.dense.weight", (32, 32), None),
    ],
)
def test_tensors_are_those_of_the_network(name, shape, told, copy):
    tensors = load_file(copy / "model.safetensors")
    tensors.pop(name, None)
    if shape is not None:
        tensors[name] = torch.zeros(shape)
    save_file(tensors, copy / "model.safetensors")
    if told is None:
        checkpoints.open_captioner(copy)
        return
    with pytest.raises(UnusableCheckpoint, match=f"do not belong together: {told}"):
        checkpoints.open_captioner(copy)


def test_a_model_that_cannot_fit_into_memory_is_refused_with_a_sentence(copy):
    with pytest.raises(OutOfMemory, match=r"takes about [0-9]+ MB, .* 1 MB"):
        checkpoints.open_captioner(copy, limit=1_000_000)


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("generation_config.json", {"decoder_start_token_id": 10_000}, "start.*found 10000"),
        ("preprocessor_config.json", {"size": {"height": 20, "width": 20}}, r"\[20, 20\], the mo"),
    ],
)
def test_what_does_not_fit_the_network_is_refused(name, values, told, copy):
    folders.change(copy, name, **values)
    with pytest.raises(InvalidCheckpoint, match=told):
        checkpoints.open_captioner(copy)


@pytest.mark.parametrize("name", ["scale_attn_weights", "scale_attn_by_inverse_layer_idx"])
def test_a_setting_that_changes_the_computation_is_refused(name, copy):
    decoder = json.loads((copy / "config.json").read_text())["decoder"]
    folders.change(copy, "config.json", decoder={**decoder, name: not decoder[name]})
    with pytest.raises(UnusableCheckpoint, match="changes how a vit-gpt2 is computed"):
        checkpoints.open_captioner(copy)


def test_a_tokenizer_of_another_model_is_refused(copy, saved):
    tokenizer = json.loads((copy / "tokenizer.json").read_text())
    known = len(tokenizer["model"]["vocab"])
    tokenizer["model"]["vocab"]["zebra"] = known
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(InvalidPackage, match=f"a piece {known}, the model knows {known}"):
        checkpoints.open_captioner(copy)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["blip", "swin-gpt2"])
def test_the_sandbox_says_what_a_folder_is(kind, saved, tmp_path):
    packed = _pack(saved(kind, trained=False).folder, tmp_path / "m.tar")
    found = operations.run_operation(
        "workers.conversion.verification:verify_huggingface", [packed], []
    )
    assert found == verification.describe_captioner(packed)
    assert (found["units"], found["inputs"]) == ("pieces", "pixels")
    assert found["architecture"] == kind
    broken = tmp_path / "broken.tar"
    broken.write_bytes(packed.read_bytes()[:2000])
    with pytest.raises(operations.InputRefused, match="cut off"):
        operations.run_operation("workers.conversion.verification:verify_huggingface", [broken], [])
