"""The house itself: what stands at the top, what may be imported where."""

import subprocess
import sys
from pathlib import Path

import pytest

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


# Two modules run when they are imported; the others are for those who have a heavy library already,
# or the extra `otel`.
IMPORT_ALL = """
import importlib, pkgutil, sys
LEFT_OUT = (".__main__", ".env", ".lightning", ".huggingface", "tracing.span_export")
RECORDING = "prescore.recording."  # needs numpy
for room in ("prescore", "service"):
    package = importlib.import_module(room)
    names = [module.name for module in pkgutil.walk_packages(package.__path__, f"{room}.")]
    for name in names:
        if not name.endswith(LEFT_OUT) and not name.startswith(RECORDING):
            importlib.import_module(name)
    print(len(names), end=" ")
print(sorted({"torch", "numpy", "safetensors", "scipy"} & set(sys.modules)))
"""


@pytest.mark.processes
def test_no_module_of_the_front_door_and_the_client_loads_anything_heavy():
    """Nor does what they import in turn: a fresh process says what it has loaded."""
    command = [sys.executable, "-c", IMPORT_ALL]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    client, front_door, loaded = result.stdout.split(maxsplit=2)
    assert int(client) >= 36
    assert int(front_door) >= 50
    assert loaded.strip() == "[]"


def test_tests_have_no_packages_that_would_shadow_ours():
    assert not [path for path in _tracked() if path.startswith("tests/") and "__init__" in path]


SHIPPED = [
    # pictures of the page, without captions or photos of others
    *(f"deploy/guide/page/{view}.png" for view in ("captions", "leaderboard", "training")),
    # weights, words and hashed counts; a CARD.md is beside each
    "workers/metrics/accord/coco.safetensors",
    "workers/metrics/accord/minilm.safetensors",
    "workers/metrics/learned/nneval.safetensors",
]


def test_no_data_and_no_path_of_a_machine_is_committed():
    binary = (".npz", ".jar", ".gz", ".safetensors", ".tar", ".jpg", ".png")
    assert [path for path in _tracked() if path.endswith(binary)] == SHIPPED
    for path in (path for path in _tracked() if path not in SHIPPED):
        data = (ROOT / path).read_bytes()  # inputs that were made up are no text
        for place in (ROOT.parent, Path.home()):
            assert f"{place}/".encode() not in data, (path, place)
