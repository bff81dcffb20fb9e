"""T51: the confinement of a worker's warm child."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.warm_children import start_warm_child
from service.kernel import confinement
from workers.runtime import child

pytestmark = pytest.mark.processes


@pytest.fixture
def warm_child(tmp_path):
    found = start_warm_child(tmp_path)
    yield found
    found.end()


@pytest.mark.long
def test_a_workers_child_is_confined_from_its_start(needs_sandbox, warm_child):
    """What it reaches then: tests/workers/sandbox/test_threat_model.py."""
    if child._NVIDIA.exists():
        pytest.skip("this machine has NVIDIA's driver")
    warm_child.send({})
    assert warm_child.receive(60) is not None
    status = Path(f"/proc/{warm_child.pid}/status").read_text()
    assert "\nNoNewPrivs:\t1\n" in status
    assert "\nSeccomp:\t2\n" in status
    files = {str(each.readlink()) for each in Path(f"/proc/{warm_child.pid}/fd").iterdir()}
    assert len([each for each in files if each.startswith("socket:")]) == 1


@pytest.mark.long
def test_torch_has_its_threads_there(needs_sandbox, tmp_path):
    """It counts cores by a call of the kernel, and has one thread where that is refused."""
    program = "from pathlib import Path; from workers.runtime import child; "
    program += "child.confine_child([], Path()); import torch; print(torch.get_num_threads())"
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", program]
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout == "2\n"


@pytest.mark.parametrize("why", ["no sandbox", "NVIDIA"])
def test_where_it_cannot_be_confined_it_runs_all_the_same(monkeypatch, tmp_path, why):
    monkeypatch.setattr(
        confinement, "explain_missing_sandbox", lambda: why if why == "no sandbox" else None
    )
    monkeypatch.setattr(child, "_NVIDIA", tmp_path if why == "NVIDIA" else tmp_path / "none")
    monkeypatch.setattr(confinement.Confinement, "apply", lambda _: pytest.fail("confined"))
    child.confine_child([], tmp_path)
