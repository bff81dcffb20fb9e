"""What a checkpoint takes, as its header tells, against what a process with it takes."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import attending_models as small
from builders import KINDS, model, tensors
from documents import ROOT
from service.contract.errors import OutOfMemory
from service.contract.formats import checkpoint_header
from workers import checkpoints
from workers.inference import checkpoint_checks

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
    return checkpoint_header.read_checkpoint_header(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "cell"),
    [("merge", "gru"), ("par", "lstm")],
)
def test_a_header_tells_what_reading_takes(tmp_path, architecture, cell):
    path = tmp_path / "model.safetensors"
    sizes = {"size": 512, "features": 64, "words": 20_000}
    told = checkpoint_checks.estimate_memory(
        _written(path, architecture, cell, torch.float16, **sizes), CPU
    )
    command = [sys.executable, "-c", PEAK, str(path)]
    took = int(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    assert took < told < 2 * took


@pytest.mark.slow
@pytest.mark.parametrize("architecture", small.NAMES)
def test_a_header_tells_what_reading_takes_of_those_that_look_at_places(tmp_path, architecture):
    path = tmp_path / "model.safetensors"
    stack = {"layers": 6, "inner_size": 2048}
    more = stack if architecture == "transformer" else {"embedding_size": 512}
    of = small.description(architecture, size=512, features=2048, words=20_000, **more)
    checkpoints.write(path, small.model(of, small.arrays(of)), torch.float16)
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
    header = _written(path, architecture, cell)
    with path.open("r+b") as file:
        file.truncate(header.data_start)
        file.truncate(path.stat().st_size + max(each.end for each in header.tensors.values()))
    needs = checkpoint_checks.estimate_memory(header, CPU)
    assert checkpoints.read(path, limit=needs)
    with pytest.raises(OutOfMemory, match="a task may take") as refused:
        checkpoints.read(path, limit=needs - 1)
    assert f"{header.parameters:,} parameters" in refused.value.detail
