"""Memory of a checkpoint by its header, beside the memory that a process with it takes."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from helpers import attending_models as small
from helpers.builders import KINDS, model, tensors
from helpers.documents import ROOT
from service.contract.errors import OutOfMemory
from service.contract.formats import checkpoint_header
from workers.inference import checkpoint_checks, checkpoints

CPU = torch.device("cpu")
# A process of its own, since memory that was used before would count.
PEAK = """
import sys
from workers import checkpoints
checkpoints.read(sys.argv[1])
lines = open("/proc/self/status").read().splitlines()
print(1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["merge gru", "par lstm", *small.NAMES])
def test_a_header_tells_what_reading_takes(tmp_path, name):
    path = tmp_path / "model.safetensors"
    if name in small.NAMES:
        stack = {"layers": 6, "inner_size": 2048}
        more = stack if name == "transformer" else {"embedding_size": 512}
        of = small.description(name, size=512, features=2048, words=20_000, **more)
        written = small.model(of, small.arrays(of))
    else:
        arrays = tensors(*name.split(), size=512, features=64, words=20_000)
        written = model(*name.split(), arrays)
    checkpoints.write_checkpoint(path, written, torch.float16)
    told = checkpoint_checks.estimate_memory(checkpoint_header.read_checkpoint_header(path), CPU)
    command = [sys.executable, "-c", PEAK, str(path)]
    took = int(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    assert took < told < 2 * took


def test_places_that_cannot_fit_beside_the_model_are_refused_with_their_number():
    of = small.description("soft_attention")
    model, rows = small.model(of, small.arrays(of)), np.zeros((200, 1000, small.FEATURES))
    checkpoint_checks.check_places_fit(model, rows, 450_000_000)
    checkpoint_checks.check_places_fit(model, rows, None)
    with pytest.raises(OutOfMemory, match="128 images with 1,000 places of size 5"):
        checkpoint_checks.check_places_fit(model, rows, 410_000_000)
    checkpoint_checks.check_places_fit(model, rows[:1], 410_000_000)


@pytest.mark.parametrize(("architecture", "cell"), KINDS)
def test_what_cannot_fit_is_refused_before_a_tensor_is_read(tmp_path, architecture, cell):
    path = tmp_path / "model.safetensors"
    checkpoints.write_checkpoint(path, model(architecture, cell, tensors(architecture, cell)))
    header = checkpoint_header.read_checkpoint_header(path)
    with path.open("r+b") as file:
        file.truncate(header.data_start)
        file.truncate(path.stat().st_size + max(each.end for each in header.tensors.values()))
    needs = checkpoint_checks.estimate_memory(header, CPU)
    assert checkpoints.read_checkpoint(path, limit=needs)
    with pytest.raises(OutOfMemory, match="a task may take") as refused:
        checkpoints.read_checkpoint(path, limit=needs - 1)
    assert f"{header.parameters:,} parameters" in refused.value.detail
