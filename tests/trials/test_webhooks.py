"""T50, T70: webhooks from a real service to a receiver that is a process of its own."""

import json
import os
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from helpers.certificates import Authority
from helpers.fleet import Fleet, until, until_ended
from helpers.tls_servers import own_address
from helpers.waits import free_port

ROOT = Path(__file__).resolve().parents[2]
RECEIVER = ROOT / "tests" / "helpers" / "webhook_receiver.py"
IS_OURS = runpy.run_path(str(ROOT / "deploy/guide/receive_webhook.py"))["is_ours"]
RUN = {
    "captions": [{"image": f"{n}.jpg", "caption": "a word"} for n in range(3)],
    "dataset": "tiny/test",
    "postgen": ["bleu_1"],
    "subset": True,
}


@pytest.fixture
def receiving(tmp_path):
    """A receiver that refuses each message once, and a service that may ask it."""
    authority = Authority(tmp_path)
    address, port, log = own_address(), free_port(), tmp_path / "received"
    issued = authority.issue(address)
    log.touch()
    command = [sys.executable, RECEIVER, address, str(port)]
    command += [issued.certificate, issued.key, log]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout.readline() == "ready\n"
        environment = {
            "PRESCORE_OUTGOING_ALLOW": f"{address}:{port}",
            "SSL_CERT_FILE": str(authority.file),
        }
        try:
            with Fleet(tmp_path / "home", **environment) as fleet:
                yield fleet, f"https://{address}:{port}/hook", log
        finally:
            receiver.kill()


def _received(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def _arrived(log):
    """The bodies that arrived, by the run that they tell of."""
    every = (json.loads(one["body"]) for one in _received(log) if one["status"] == 204)
    return Counter(one["data"].get("id") for one in every)


def _submit(client, number):
    asked = {**RUN, "labels": {"n": str(number)}}
    identity = client.post("/v1/evaluations", json=asked).json()["id"]
    return until_ended(client, identity, 60)["id"]


@pytest.mark.slow
def test_nothing_is_lost_when_the_sender_is_killed_and_each_message_is_signed(receiving):
    """Each message is refused once, and while it waits to be sent again the janitor is killed."""
    fleet, url, log = receiving
    with fleet.client() as client:
        fleet.add_dataset()
        made = client.post("/v1/webhooks", json={"url": url}).json()
        identities = []
        for number in range(3):
            identities.append(_submit(client, number))
            fleet.find("janitor").kill()
        until(lambda: len(_arrived(log)) == 3, 120, "a message for each run")
        assert set(_arrived(log)) == set(identities)
        until(lambda: not client.get(f"/v1/webhooks/{made['id']}").json()["waiting"], 90, "the end")
    for one in _received(log):
        assert IS_OURS(one["headers"], one["body"].encode(), made["secret"])
    of_runs = {}
    for one in _received(log):
        run = json.loads(one["body"])["data"]["id"]
        of_runs.setdefault(run, set()).add(one["headers"]["webhook-id"])
    assert all(len(ids) == 1 for ids in of_runs.values())
    assert made["secret"] not in fleet.log.read_text()
    assert "/hook" not in fleet.log.read_text()
    assert made["secret"] not in os.environ.values()
