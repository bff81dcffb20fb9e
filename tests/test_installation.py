"""What a stranger does: the install line of the README, from a clean clone, in a clean place."""

import os
import shutil
import subprocess
import sys
from importlib import metadata
from itertools import chain
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


def _installed(clone, folder, *what):
    """The programs of an environment of its own in which this is installed."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "-q")
    _run(*pip, "-c", "deploy/constraints.txt", *what, cwd=clone)
    return folder / "bin"


@pytest.mark.slow
def test_the_client_alone_is_light(clone, tmp_path):
    binaries = _installed(clone, tmp_path / "venv", "./service/client")
    assert "Usage" in _run(binaries / "prescore", "--help", cwd=tmp_path)
    installed = _run(binaries / "python", "-m", "pip", "list", cwd=tmp_path).lower()
    for heavy in ("torch", "numpy", "fastapi"):
        assert heavy not in installed


@pytest.mark.slow
def test_the_install_line_of_the_readme_gives_working_commands(clone, tmp_path):
    binaries = _installed(clone, tmp_path / "venv", "./service/client", ".[service,workers]")
    captions = tmp_path / "bundle"
    captions.mkdir()
    line = '{"image": "a.jpg", "split": "test", "references": ["a cat"]}\n'
    (captions / "captions.jsonl").write_text(line)
    assert "images 1" in _run(binaries / "prescore", "check", captions, cwd=tmp_path)
    code = (
        "from workers.inference import decoding, prefix, scoring; from workers.lab import training"
    )
    _run(binaries / "python", "-c", code, cwd=tmp_path)


IMPORT_THE_CONTRACT = """
import importlib, pkgutil, sys
import service.contract
walk = pkgutil.walk_packages(service.contract.__path__, "service.contract.")
names = [each.name for each in walk]
for name in names:
    importlib.import_module(name)
print(len(names), service.contract.__file__, sys.modules["prescore.models"].__file__)
"""
PYDANTIC = (
    "pydantic",
    "pydantic-core",
    "annotated-types",
    "typing-extensions",
    "typing-inspection",
)


def _packages(distribution):
    """The folders and modules that it has put beside each other."""
    tops = {Path(str(file)).parts[0] for file in metadata.files(distribution) or ()}
    place = Path(str(metadata.distribution(distribution).locate_file("")))
    return [place / top for top in tops if "dist-info" not in top and (place / top).exists()]


@pytest.mark.long
def test_the_contract_imports_where_there_is_pydantic_and_nothing_else(tmp_path):
    """No site-packages: copies of the contract and of the client, whose answers it imports, and
    links to pydantic and what that needs.
    """
    shutil.copytree(ROOT / "service" / "contract", tmp_path / "service" / "contract")
    shutil.copytree(ROOT / "service" / "client" / "prescore", tmp_path / "prescore")
    shutil.copy(ROOT / "service" / "__init__.py", tmp_path / "service")
    for package in chain.from_iterable(map(_packages, PYDANTIC)):
        (tmp_path / package.name).symlink_to(package)
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.append({str(tmp_path)!r})\n",
    ]
    command[-1] += IMPORT_THE_CONTRACT
    found = _run(*command, cwd=tmp_path).split()
    assert int(found[0]) > 30
    assert all(place.startswith(str(tmp_path)) for place in found[1:])
