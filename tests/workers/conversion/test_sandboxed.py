"""What is opened in the sandbox: PyTorch's state dicts, by the command's own function; tokenizers
of strangers: tests/workers/jobs/test_verified.py.
"""

import struct
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from service.contract.errors import RequestRefused, SandboxUnavailable, UnusableCheckpoint
from service.kernel import confinement
from workers.conversion import foreign_files
from workers.conversion.foreign_files import ConversionLimits
from workers.sandbox import operations

pytestmark = [pytest.mark.processes]


@pytest.fixture
def box():
    return ConversionLimits(memory=1_000_000_000)


def _state():
    weight = torch.arange(6.0).reshape(2, 3)
    return {
        "weight": weight,
        "turned": weight.t(),
        "same": weight,
        "half": weight.to(torch.bfloat16),
        "empty": torch.zeros(0, 3),
        "count": torch.tensor(7),
        "mask": torch.ones(2, dtype=torch.bool),
        "parts": torch.eye(2).to_sparse(),
    }


@pytest.mark.long
def test_tensors_keep_their_names_and_values(needs_sandbox, tmp_path, box):
    """Those that share memory get their own; what is no weight is named, and left out."""
    source, target = tmp_path / "model.pt", tmp_path / "model.safetensors"
    torch.save({"state_dict": _state(), "epoch": 3}, source)
    left_out = foreign_files.extract_tensors(source, target, box)
    found = load_file(target)
    expected = {name: value for name, value in _state().items() if name not in ("mask", "parts")}
    assert set(found) == set(expected)
    for name, tensor in found.items():
        assert tensor.dtype == expected[name].dtype
        assert torch.equal(tensor, expected[name])
    assert left_out == ["mask", "parts"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.pt", "model.safetensors"]


@pytest.mark.long
def test_where_there_is_no_sandbox_only_the_operators_setting_opens_it(tmp_path, box, monkeypatch):
    monkeypatch.setattr(
        confinement, "explain_missing_sandbox", lambda: "this kernel has no Landlock"
    )
    source, target = tmp_path / "model.pt", tmp_path / "model.safetensors"
    torch.save({"weight": torch.ones(2)}, source)
    lacking = r"this kernel has no Landlock; .*PRESCORE_SANDBOX"
    with pytest.raises(SandboxUnavailable, match=lacking):
        foreign_files.extract_tensors(source, target, box)
    assert not target.exists()
    foreign_files.extract_tensors(source, target, replace(box, sandbox="off"))
    assert torch.equal(load_file(target)["weight"], torch.ones(2))


@pytest.mark.parametrize(
    "made", [b"", struct.pack("<Q", 1 << 60) + b"{}", struct.pack("<Q", 2) + b"[]"]
)
def test_what_a_child_has_written_is_judged_as_a_strangers_file(tmp_path, box, monkeypatch, made):
    """Whoever breaks out of the reader writes what they like, and answers what they like."""

    def broken(operation, inputs, outputs, parameters, **options):
        outputs[0].write_bytes(made)
        return {"left_out": {"x": 1}}

    monkeypatch.setattr(operations, "run_operation", broken)
    source, target = tmp_path / "model.pt", tmp_path / "model.safetensors"
    source.write_bytes(b"x")
    with pytest.raises(UnusableCheckpoint, match="what was made of it is wrong"):
        foreign_files.extract_tensors(source, target, box)
    assert not target.exists()


@pytest.mark.parametrize("answer", [{}, {"left_out": {"x": 1}}, {"left_out": [1, "a\x1b[2J"]}])
def test_what_a_child_says_of_its_task_may_be_anything(tmp_path, box, monkeypatch, answer):
    def broken(operation, inputs, outputs, parameters, **options):
        save_file({"weight": torch.ones(1)}, outputs[0])
        return answer

    monkeypatch.setattr(operations, "run_operation", broken)
    (tmp_path / "model.pt").write_bytes(b"x")
    left_out = foreign_files.extract_tensors(tmp_path / "model.pt", tmp_path / "out", box)
    assert all(name == r"a\x1b[2J" for name in left_out)


def test_a_file_that_is_not_there_is_refused(tmp_path, box):
    with pytest.raises(RequestRefused, match="expected a file, found nothing"):
        foreign_files.extract_tensors(tmp_path / "none.pt", tmp_path / "out", box)
