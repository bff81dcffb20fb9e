"""What a checkpoint takes, as its header tells, against what a process with it takes."""

import subprocess
import sys

import pytest
import torch

from builders import KINDS, model, tensors
from documents import ROOT
from service.contract.errors import OutOfMemory
from service.contract.formats import checkpoint_header
from workers import checkpoints
from workers.inference import memory

CPU = torch.device("cpu")
# A process of its own, since memory that was used before would count.
PEAK = """
import sys
from workers import checkpoints
checkpoints.read(sys.argv[1])
lines = open("/proc/self/status").read().splitlines()
print(1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1]))
"""


def _written(path, architecture, cell, dtype=torch.float32, **sizes):
    checkpoints.write(path, model(architecture, cell, tensors(architecture, cell, **sizes)), dtype)
    return checkpoint_header.read(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "cell"),
    [("merge", "gru"), ("par", "lstm")],
)
def test_a_header_tells_what_reading_takes(tmp_path, architecture, cell):
    path = tmp_path / "model.safetensors"
    sizes = {"size": 512, "features": 64, "words": 20_000}
    told = memory.needed(_written(path, architecture, cell, torch.float16, **sizes), CPU)
    command = [sys.executable, "-c", PEAK, str(path)]
    took = int(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    assert took < told < 2 * took


@pytest.mark.parametrize(("architecture", "cell"), KINDS)
def test_what_cannot_fit_is_refused_before_a_tensor_is_read(tmp_path, architecture, cell):
    path = tmp_path / "model.safetensors"
    header = _written(path, architecture, cell)
    with path.open("r+b") as file:
        file.truncate(header.data_start)
        file.truncate(path.stat().st_size + max(each.end for each in header.tensors.values()))
    needs = memory.needed(header, CPU)
    assert checkpoints.read(path, limit=needs)
    with pytest.raises(OutOfMemory, match="a work may take") as refused:
        checkpoints.read(path, limit=needs - 1)
    assert f"{header.parameters:,} parameters" in refused.value.detail
