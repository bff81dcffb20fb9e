"""The client's commands as a CI job calls them, each a process of its own.

The service is in this process: what matters is the command, its arguments, its output and its end.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.fleet import checkpoint

PRESCORE = Path(sys.executable).with_name("prescore")


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("a home")) as service:
        service.add_dataset()
        yield service


def _prescore(service, *arguments, program=PRESCORE):
    return subprocess.run(
        [program, *map(str, arguments), "--url", service.url],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_submit_uploads_waits_and_prints_scores(service, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(checkpoint(seed=900))
    options = ("--dataset", "tiny/test", "--wait", "--json", "--postgen", "bleu,cider_d")
    result = _prescore(service, "submit", path, *options)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["status"] == "succeeded"
    assert {"cider_d", "bleu_4", "perplexity"} <= set(found["scores"])
    again = json.loads(_prescore(service, "submit", path, *options).stdout)
    assert again["scores"] == found["scores"]
    assert all(task["cached"] for task in again["tasks"])
    assert _prescore(service, "status", found["id"]).returncode == 0
    scores = _prescore(service, "scores", found["id"], "--pregen", "--json")
    assert "mean_join_prob_miss0" in scores.stdout


def test_what_is_refused_exits_with_2_and_the_place(service, tmp_path):
    (tmp_path / "captions.json").write_text(json.dumps([{"image": "x.jpg", "caption": "a"}]))
    result = _prescore(service, "submit", tmp_path / "captions.json", "--dataset", "tiny/test")
    assert result.returncode == 2
    assert "item 1, image" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_client_alone_submits_to_a_live_service(service, tmp_path):
    """A virtual environment with neither torch, numpy nor FastAPI."""
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "-q", "-c", root / "deploy" / "constraints.txt"]
    subprocess.run([*pip, root / "service" / "client"], check=True, capture_output=True)
    path = tmp_path / "model.safetensors"
    path.write_bytes(checkpoint(seed=901))
    result = _prescore(
        service,
        *("submit", path, "--dataset", "tiny/test", "--wait", "--json"),
        program=python.with_name("prescore"),
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["status"] == "succeeded"
