"""The house itself: what stands at the top, what may be imported where."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOP = {
    *("pyproject.toml", "README.md", "service", "workers", "tests", "deploy", "openapi"),
    *("LICENSE", "CHANGELOG.md", "CONTRIBUTING.md"),
}


def _tracked() -> list[str]:
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return output.splitlines()


def test_nothing_else_stands_at_the_top():
    top = {path.split("/")[0] for path in _tracked()}
    assert {name for name in top if not name.startswith(".")} == TOP


def test_the_contract_and_the_client_load_without_torch_and_numpy():
    code = (
        "import service.contract.importers, service.contract.catalogue, service.contract.settings,"
        " prescore.commands, sys; print([m for m in ('torch', 'numpy') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.strip() == "[]"


def test_tests_have_no_packages_that_would_shadow_ours():
    assert not [path for path in _tracked() if path.startswith("tests/") and "__init__" in path]


def test_no_data_and_no_path_of_a_machine_is_committed():
    binary = (".npz", ".jar", ".gz", ".safetensors", ".tar", ".jpg", ".png")
    assert not [path for path in _tracked() if path.endswith(binary)]
    for path in _tracked():
        text = (ROOT / path).read_text(encoding="utf-8")
        for place in (ROOT.parent, Path.home()):
            assert f"{place}/" not in text, (path, place)
