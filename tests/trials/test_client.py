"""The client's command, installed alone; commands as processes otherwise: test_gate_command.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.fleet import checkpoint


@pytest.mark.slow
def test_a_client_alone_submits_to_a_live_service(serve_here, tmp_path):
    """A virtual environment with neither torch, numpy nor FastAPI."""
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    programs = tmp_path / "venv" / "bin"
    pip = [programs / "python", "-m", "pip", "install", "-q", "-c", root / "deploy/constraints.txt"]
    subprocess.run([*pip, root / "service" / "client"], check=True, capture_output=True)
    path = tmp_path / "model.safetensors"
    path.write_bytes(checkpoint(seed=901))
    with serve_here(tmp_path / "home") as service:
        service.add_dataset()
        command = [programs / "prescore", "submit", path, "--dataset", "tiny/test", "--wait"]
        result = subprocess.run(
            [*command, "--json", "--url", service.url],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["status"] == "succeeded"
