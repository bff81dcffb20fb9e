"""T36: plug-ins where processes matter: workers tell of them when they start, warm children open
files by them, and a new version begins anew.
"""

import os
from contextlib import ExitStack

import pytest

from helpers import outside
from helpers import plugin_packages as packages
from helpers.fleet import Fleet, bundle, digest, until, until_ended
from service.engine import fleet_status

HANGS = "from workers.inference.plugins import registry\nregistry.SECONDS = 1.0\n" + (
    packages.changed("return state, state", "time.sleep(500)").replace(
        "import nn", "import nn\nimport time"
    )
)


@pytest.fixture(params=["embedded", "postgresql-redis-s3"])
def fleet(request, tmp_path):
    """A service whose workers find packages in `site`."""
    site = tmp_path / "site"
    packages.install(site, "1.0")
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    with ExitStack() as stack:
        parts = {}
        if request.param != "embedded":
            server = request.getfixturevalue("s3_server")
            parts = stack.enter_context(outside.or_skip(outside.parts(server)))
        yield stack.enter_context(Fleet(tmp_path / "home", PYTHONPATH=path, **parts))


def _told(fleet):
    """The versions of which workers have told."""
    with fleet.records.reading() as connection:
        return {plugin.version for plugin in fleet_status.read_plugins(connection).values()}


def _evaluated(client, content):
    asked = {"checkpoint": digest(content), "dataset": "tiny/test", "postgen": ["rouge_l"]}
    identity = client.post("/v1/evaluations", json=asked).json()["id"]
    return until_ended(client, identity, 60)


def _until_judged(client, content):
    def judged():
        found = client.get(f"/v1/checkpoints/{digest(content)}").json()
        return found if found["state"] != "converting" else None

    return until(judged, 60, "the verification")


@pytest.mark.slow
def test_a_plug_in_is_found_by_workers_and_a_new_version_begins_anew(fleet, tmp_path):
    content, _ = packages.checkpoint()
    with fleet.client() as client:
        client.put("/v1/datasets/tiny", content=bundle(20))
        until(lambda: _told(fleet), 60, "the workers' plug-ins")
        client.put(f"/v1/checkpoints/{digest(content)}", content=content)
        found = _until_judged(client, content)
        assert (found["state"], found["plugin"]["version"]) == ("ready", "1.0"), found
        first = _evaluated(client, content)
        assert first["status"] == "succeeded", first["tasks"]
    fleet.stop()
    site = tmp_path / "site"
    (site / "acme_captioners-1.0.dist-info").rename(site / "old")
    packages.install(site, "1.1", code=HANGS)
    fleet.start()
    with fleet.client() as client:
        until(lambda: _told(fleet) == {"1.1"}, 60, "the workers' new plug-in")
        second = _evaluated(client, content)
        error = {task["name"]: task["error"] for task in second["tasks"]}["checkpoint"]
        assert error["code"] == "plugin_failed"
        assert "show-and-tell (acme-captioners 1.1) failed in hidden: no answer" in error["detail"]
        assert client.get(f"/v1/evaluations/{first['id']}").json()["scores"] == first["scores"]
        other = packages.canonical(packages.checkpoint()[1])
        client.put(f"/v1/checkpoints/{digest(other)}", content=other)
        ended = _evaluated(client, other)
        assert ended["status"] == "succeeded"
        assert {task["attempts"] for task in ended["tasks"]} == {1}
