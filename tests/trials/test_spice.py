"""SPICE in a real service that gets its files while it runs, and whose Java is killed."""

import contextlib
import os
import signal

import psutil
import pytest

from helpers.fleet import Fleet, until, until_ended
from service.contract.assets import AssetFolders
from workers.offline import assets

CAPTIONS = [
    {"image": f"{index}.jpg", "caption": f"a dog and {index} black cats sit on the grass"}
    for index in range(40)
]
REQUEST = {"captions": CAPTIONS, "dataset": "tiny/test", "postgen": ["spider"]}


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A service of its own, without what SPICE needs."""
    with Fleet(tmp_path_factory.mktemp("a fleet"), PRESCORE_ASSETS="") as fleet:
        fleet.add_dataset()
        yield fleet


def _evaluate(fleet, request, seconds):
    with fleet.client() as client:
        identity = client.post("/v1/evaluations", json=request).json()["id"]
        found = until_ended(client, identity, seconds)
    return found, {task["name"]: task for task in found["tasks"]}


def _parser_of(fleet):
    """The Java that parses, once it is busy."""
    for process in fleet.family():
        with contextlib.suppress(psutil.Error):
            if "spice" in process.cmdline() and process.memory_info().rss > 200e6:
                return process
    return None


@pytest.mark.slow
def test_once_they_are_there_it_is_computed_though_its_java_is_killed(bare, spice_jars):
    """In the running service. What was parsed before the kill is not parsed again."""
    assets.add_folder(spice_jars[0].parent, AssetFolders(bare.home))
    with bare.client() as client:
        started = client.post("/v1/evaluations", json=REQUEST).json()
    victim = until(lambda: _parser_of(bare), 120, "a Java that parses")
    os.kill(victim.pid, signal.SIGKILL)
    found, tasks = _evaluate(bare, REQUEST, 300)
    assert found["status"] == "succeeded", found["error"]
    assert 2 in (tasks["tuples"]["attempts"], tasks["reference_tuples"]["attempts"])
    assert list(found["scores"]) == ["spider"]
    assert started["id"] != found["id"]
    turned = [
        {"image": at["image"], "caption": given["caption"]}
        for at, given in zip(CAPTIONS, CAPTIONS[::-1], strict=True)
    ]
    again, tasks = _evaluate(bare, {**REQUEST, "captions": turned}, 60)
    assert again["status"] == "succeeded"
    assert tasks["tuples"]["cached"] is False
    assert tasks["reference_tuples"]["cached"] is True
    assert tasks["tuples"]["seconds"] < 2
    assert bare.leftovers() == []
