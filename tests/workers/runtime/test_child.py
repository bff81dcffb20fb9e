"""T51: what the warm child of a worker is kept from, and what it still needs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import hostile_child
from helpers.sandbox_surroundings import surroundings
from workers.runtime import child
from workers.runtime.warm_child import WarmChild
from workers.sandbox import confinement, landlock

pytestmark = pytest.mark.processes

TRIES = """
import json, sys
sys.path.insert(0, sys.argv[1])
import hostile_child
from workers.runtime import child
child.confine_child()
print(json.dumps(hostile_child.attack([], [], json.loads(sys.argv[2]))))
"""
KEPT_FROM = {
    "connect by TCP": "EACCES",
    "serve by TCP": "EACCES",
    "read the parent's memory": "EACCES",
    "read the parent's environment": "EACCES",
    "read the parent's memory by a call": "EPERM",
    "trace the parent": "EPERM",
}
FROM_6 = {"connect to an abstract socket": "EPERM", "signal the parent": "EPERM"}
NEEDED = (
    *("fork", "run a program", "start a thread", "open 500 files", "allocate 8 GB"),
    *("make a file", "make a folder", "delete a file", "rename a file", "read the record"),
)


@pytest.fixture(scope="module")
def found(needs_sandbox, tmp_path_factory):
    if child._NVIDIA.exists():
        pytest.skip("this machine has NVIDIA's driver")
    with surroundings(tmp_path_factory.mktemp("around")) as given:
        helpers = Path(hostile_child.__file__).parent
        command = [sys.executable, "-c", TRIES, helpers, json.dumps(given)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def test_it_reaches_no_other_process_and_nothing_by_tcp(found):
    expected = KEPT_FROM | (FROM_6 if landlock.read_landlock_version() >= 6 else {})
    assert {name: found[name] for name in expected} == expected


def test_it_has_what_works_need(found):
    assert {name: found[name] for name in NEEDED} == dict.fromkeys(NEEDED, "reached")


@pytest.mark.long
def test_a_workers_child_is_kept_so_from_its_start(found, tmp_path):
    settings = {"PRESCORE_HOME": str(tmp_path), "PRESCORE_DEVICE": "cpu"}
    warm = WarmChild("metrics", {**settings, "PRESCORE_TASK_MEMORY": "1000000000"})
    try:
        warm.send({})
        assert warm.receive(60) is not None
        assert "\nNoNewPrivs:\t1\n" in Path(f"/proc/{warm.pid}/status").read_text()
    finally:
        warm.end()


@pytest.mark.parametrize("why", ["no sandbox", "NVIDIA"])
def test_where_it_cannot_be_kept_it_tasks_all_the_same(monkeypatch, tmp_path, why):
    monkeypatch.setattr(
        confinement, "explain_missing_sandbox", lambda: why if why == "no sandbox" else None
    )
    monkeypatch.setattr(child, "_NVIDIA", tmp_path if why == "NVIDIA" else tmp_path / "none")
    monkeypatch.setattr(confinement, "isolate_process", lambda: pytest.fail("confined"))
    child.confine_child()
