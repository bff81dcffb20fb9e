"""The client and its commands make, test and delete webhooks: against a real service, its sender
and a receiver on this machine.
"""

import json
from threading import Event, Thread

import pytest
from typer.testing import CliRunner

import prescore
from helpers import command_app
from helpers.certificates import Authority
from helpers.networks import Cut, Network
from helpers.service_here import service_here
from helpers.submissions import run_command
from helpers.tls_servers import PORT, read_request, serving
from service.outbound.client import OutboundClient
from service.outbound.destinations import AllowedHosts
from service.webhooks.sender import WebhookSender

URL = f"https://hooks.example:{PORT}/some/long/secret/place"


class Receiver:
    status = 204

    def talk(self, near):
        read_request(near)
        near.sendall(f"HTTP/1.1 {self.status} X\r\nContent-Length: 0\r\n\r\n".encode())


@pytest.fixture(scope="module")
def receiver():
    return Receiver()


@pytest.fixture(scope="module")
def told(receiver, tmp_path_factory):
    """A service, and the sender beside it."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    with serving(receiver.talk, authority.issue("hooks.example").server()) as server:
        named = AllowedHosts.read(f"hooks.example:{PORT}")
        outgoing = OutboundClient(named, lambda host, port: [server.address], authority.client())
        with service_here(tmp_path_factory.mktemp("home"), outgoing=outgoing) as service:
            yield service, WebhookSender(service.parts, outgoing)


@pytest.fixture
def service(told):
    return told[0]


@pytest.fixture
def client(service):
    with prescore.Client(service.url) as client:
        yield client
        for webhook in client.webhooks():
            client.delete_webhook(webhook.id)


@pytest.fixture
def sending(told):
    """What `prescore janitor` does, all the time."""
    over = Event()

    def send():
        while not over.wait(0.05):
            told[1].round()
            told[1].join()

    thread = Thread(target=send)
    thread.start()
    yield
    over.set()
    thread.join()


def test_one_event_in_place_of_a_list_is_told(client):
    with pytest.raises(prescore.InvalidArgument, match="a list of names"):
        client.make_webhook(URL, events="run.failed")


def test_a_secret_is_not_asked_for_twice(service, client):
    """Where an answer is lost, a repetition would make a second webhook, which nobody knows of."""
    cuts = [Cut(at, answered=True) for at in (b"POST /v1/webhooks HTTP", b"/rotate")]
    with Network(service.port, *cuts) as network, prescore.Client(network.url) as asking:
        with pytest.raises(prescore.Unreachable):
            asking.make_webhook(URL)
        (made,) = asking.webhooks()
        with pytest.raises(prescore.Unreachable):
            asking.rotate_webhook(made.id)
    assert network.cuts == []
    assert len(list(client.audit(action="webhook.rotated", of=made.id))) == 1


def test_commands_make_show_and_delete(service, client):
    made = run_command(service, "webhooks", "create", URL, "--events", "run.failed,verdict.failed")
    identity, secret = made.stdout.split()
    assert secret.startswith("whsec_")
    assert secret not in made.stderr
    assert "shown this once" in made.stderr
    listed = run_command(service, "webhooks", "list")
    assert identity in listed.stdout
    assert "run.failed, verdict.failed" in listed.stdout
    (shown,) = json.loads(run_command(service, "webhooks", "list", "--json").stdout)
    assert shown["id"] == identity
    assert "active" in run_command(service, "webhooks", "show", identity).stdout
    other = json.loads(run_command(service, "webhooks", "rotate", identity, "--json").stdout)[
        "secret"
    ]
    assert other not in (None, secret)
    for said in (listed.output, run_command(service, "webhooks", "show", identity).output):
        assert secret not in said
        assert other not in said
    run_command(service, "webhooks", "delete", identity)
    run_command(service, "webhooks", "delete", identity, code=2)


def test_a_url_that_is_a_secret_comes_by_stdin_alone(service, client):
    refused = run_command(service, "webhooks", "create", URL, "--format", "slack", code=2)
    assert "- < FILE" in refused.output
    assert list(client.webhooks()) == []
    words = ["webhooks", "create", "-", "--format", "slack", "--url", service.url]
    made = CliRunner().invoke(command_app.prescore(), words, input=f"{URL}\n")
    assert made.exit_code == 0, made.output
    assert made.stdout.strip() == next(iter(client.webhooks())).id
    assert URL not in made.output


def test_a_test_that_arrives_and_one_that_does_not(service, client, receiver, sending, monkeypatch):
    made = client.make_webhook(URL)
    assert made.secret not in repr(made) + str(made)
    assert "the test arrived" in run_command(service, "webhooks", "test", made.id).stdout
    monkeypatch.setattr(receiver, "status", 500)
    failed = run_command(service, "webhooks", "test", made.id, "--json", code=3)
    assert "did not arrive" in failed.stderr
    assert "500" in failed.stderr
    assert json.loads(failed.stdout)["errors"][0]["event"] == "webhook.test"


def test_a_test_that_nobody_sends_is_not_awaited_for_ever(service, client):
    made = client.make_webhook(URL)
    late = run_command(service, "webhooks", "test", made.id, "--timeout", "0.1", code=3)
    assert "nothing has come" in late.stderr
    run_command(service, "webhooks", "test", made.id, "--timeout", "0")
