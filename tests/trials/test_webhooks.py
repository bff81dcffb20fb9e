"""T50, T70: webhooks from the processes of a real service."""

import json
import os
import runpy
import ssl
from pathlib import Path

import pytest

from helpers.certificates import Authority
from helpers.fleet import Fleet, until, until_ended
from helpers.tls_servers import PORT, read_request, serving

ROOT = Path(__file__).resolve().parents[2]
IS_OURS = runpy.run_path(str(ROOT / "deploy/guide/receive_webhook.py"))["is_ours"]
RUN = {
    "captions": [{"image": f"{n}.jpg", "caption": "a word"} for n in range(3)],
    "dataset": "tiny/test",
    "postgen": ["bleu_1"],
    "subset": True,
}


class RefusingReceiver:
    """Refuses each message once, and keeps what it is told: (headers, body, status)."""

    def __init__(self):
        self.received = []

    def talk(self, near):
        head, body = read_request(near)
        pairs = (line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        headers = {name.lower(): text for name, text in pairs}
        before = {told["webhook-id"] for told, _, _ in self.received}
        status = 204 if headers["webhook-id"] in before else 503
        self.received.append((headers, body, status))
        near.sendall(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())

    def arrived(self):
        """The runs of which a message was taken."""
        return {
            json.loads(body)["data"]["id"] for _, body, status in self.received if status == 204
        }


@pytest.fixture
def receiving(tmp_path):
    """A receiver, and a service that may ask it."""
    authority, receiver = Authority(tmp_path), RefusingReceiver()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with serving(receiver.talk, context) as server:
        issued = authority.issue(server.address)
        context.load_cert_chain(issued.certificate, issued.key)
        address = f"{server.address}:{PORT}"
        believed = str(authority.file)
        with Fleet(
            tmp_path / "home", PRESCORE_OUTGOING_ALLOW=address, SSL_CERT_FILE=believed
        ) as fleet:
            yield fleet, f"https://{address}/hook", receiver


def _submit(client, number):
    asked = {**RUN, "labels": {"n": str(number)}}
    identity = client.post("/v1/evaluations", json=asked).json()["id"]
    return until_ended(client, identity, 60)["id"]


@pytest.mark.slow
def test_nothing_is_lost_when_the_sender_is_killed_and_each_message_is_signed(receiving):
    """Each message is refused once, and while it waits to be sent again the janitor is killed."""
    fleet, url, receiver = receiving
    with fleet.client() as client:
        fleet.add_dataset()
        made = client.post("/v1/webhooks", json={"url": url}).json()
        identities = []
        for number in range(3):
            identities.append(_submit(client, number))
            fleet.find("janitor").kill()
        until(lambda: len(receiver.arrived()) == 3, 120, "a message for each run")
        assert receiver.arrived() == set(identities)
        until(lambda: not client.get(f"/v1/webhooks/{made['id']}").json()["waiting"], 90, "the end")
    of_runs = {}
    for headers, body, _ in receiver.received:
        assert IS_OURS(headers, body, made["secret"])
        of_runs.setdefault(json.loads(body)["data"]["id"], set()).add(headers["webhook-id"])
    assert all(len(ids) == 1 for ids in of_runs.values())
    assert made["secret"] not in fleet.log.read_text()
    assert "/hook" not in fleet.log.read_text()
    assert made["secret"] not in os.environ.values()
