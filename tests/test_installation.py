"""What a stranger does: the install line of the README, from a clean clone, in a clean place."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PIP = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}


def _run(*command, cwd, timeout=1200, **environment):
    result = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), **PIP, **environment},
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return result.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clone") / "prescore"
    tracked = _run("git", "ls-files", cwd=ROOT).splitlines()
    for name in tracked:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def _environment(folder):
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder / "bin"


@pytest.mark.slow
def test_the_client_alone_is_light(clone, tmp_path):
    binaries = _environment(tmp_path / "venv")
    pip = (binaries / "python", "-m", "pip", "install", "-q", "-c", "deploy/constraints.txt")
    _run(*pip, "./service/client", cwd=clone)
    assert "Usage" in _run(binaries / "prescore", "--help", cwd=tmp_path)
    installed = _run(binaries / "python", "-m", "pip", "list", cwd=tmp_path).lower()
    for heavy in ("torch", "numpy", "fastapi"):
        assert heavy not in installed


@pytest.mark.slow
def test_the_install_line_of_the_readme_gives_working_commands(clone, tmp_path):
    binaries = _environment(tmp_path / "venv")
    pip = (binaries / "python", "-m", "pip", "install", "-q", "-c", "deploy/constraints.txt")
    _run(*pip, "./service/client", ".[service,workers]", cwd=clone)
    captions = tmp_path / "bundle"
    captions.mkdir()
    line = '{"image": "a.jpg", "split": "test", "references": ["a cat"]}\n'
    (captions / "captions.jsonl").write_text(line)
    assert "'images': 1" in _run(binaries / "prescore", "check", captions, cwd=tmp_path)
    code = (
        "from workers.inference import decoding, prefix, scoring; from workers.lab import training"
    )
    _run(binaries / "python", "-c", code, cwd=tmp_path)
