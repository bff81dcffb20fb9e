import numpy as np
import pytest
import torch

from helpers.builders import KINDS, model, tensors
from service.contract.errors import (
    InvalidCheckpoint,
    TensorLayout,
    UnusableCheckpoint,
)
from workers.inference import checkpoints


@pytest.mark.parametrize(("architecture", "cell"), [*KINDS, ("pre", "torch_gru")])
def test_what_is_written_is_read_back(tmp_path, architecture, cell):
    written = model(architecture, cell, tensors(architecture, cell))
    checkpoints.write_checkpoint(tmp_path / "model.safetensors", written)
    found = checkpoints.read_checkpoint(tmp_path / "model.safetensors")
    assert found.description == written.description
    assert found.tensors.keys() == written.tensors.keys()
    for name, tensor in written.tensors.items():
        assert torch.equal(found.tensors[name], tensor), name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_opened_as_float32(tmp_path, dtype):
    written = model("init", "gru", tensors("init", "gru"))
    checkpoints.write_checkpoint(tmp_path / "model.safetensors", written, dtype)
    found = checkpoints.read_checkpoint(tmp_path / "model.safetensors")
    for name, tensor in written.tensors.items():
        assert found.tensors[name].dtype == torch.float32
        assert torch.equal(found.tensors[name], tensor.to(dtype).float()), name


def test_a_header_whose_length_spells_a_zip_is_no_zip(tmp_path):
    """A safetensors file begins with the length of its header, and 0x4B50 is "PK"."""
    checkpoints.write_checkpoint(
        tmp_path / "m.safetensors", model("init", "gru", tensors("init", "gru"))
    )
    content = (tmp_path / "m.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, values = content[8 : 8 + length], content[8 + length :]
    path = tmp_path / "pk.safetensors"
    path.write_bytes(0x4B50.to_bytes(8, "little") + header.ljust(0x4B50) + values)
    assert path.read_bytes().startswith(b"PK")
    found = checkpoints.open_captioner(path)
    assert found.tensors.keys() == checkpoints.read_checkpoint(path).tensors.keys()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_found_by_name(tmp_path, value):
    arrays = tensors("init", "gru")
    arrays["candidate.bias"][3] = value
    checkpoints.write_checkpoint(tmp_path / "m.safetensors", model("init", "gru", arrays))
    with pytest.raises(UnusableCheckpoint, match=r"candidate\.bias: 1 of 8 values"):
        checkpoints.read_checkpoint(tmp_path / "m.safetensors")


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    checkpoints.write_checkpoint(path, model("init", "gru", tensors("init", "gru")))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(TensorLayout, match="cut off"):
        checkpoints.read_checkpoint(path)


def test_no_file_is_an_error_that_names_the_path(tmp_path):
    with pytest.raises(InvalidCheckpoint, match="nothing at"):
        checkpoints.read_checkpoint(tmp_path / "absent.safetensors")


def test_the_same_weights_are_the_same_bytes_each_time(tmp_path):
    """Digests are what everything is found by; the official writer shuffles its metadata."""
    for name in "ab":
        checkpoints.write_checkpoint(tmp_path / name, model("init", "gru", tensors("init", "gru")))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
