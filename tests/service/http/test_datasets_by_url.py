"""Datasets that the service fetches: what is sent, found at a URL (T50)."""

from threading import Event, Thread

import pytest
from typer.testing import CliRunner

import prescore
from helpers import command_app
from helpers.certificates import Authority
from helpers.fleet import bundle, digest
from helpers.tls_servers import PORT, read_request, serving
from service.http.routers import dataset_fetches
from service.outbound.client import OutboundClient
from service.outbound.destinations import AllowedHosts

URL = f"https://data.example:{PORT}/flickr.tar?token=secret"
TAR = bundle(7)


class DatasetHost:
    """Answers with `body` and `status`."""

    def __init__(self):
        self.status, self.headers, self.body = 200, "", TAR
        self.waits: Event | None = None
        self.begun = Event()

    def talk(self, near):
        self.head, _ = read_request(near)
        self.begun.set()
        if self.waits is not None:
            assert self.waits.wait(20)
        head = f"HTTP/1.1 {self.status} X\r\n{self.headers}Content-Length: {len(self.body)}\r\n\r\n"
        near.sendall(head.encode() + self.body)


@pytest.fixture(scope="module")
def fetching(serve_here, tmp_path_factory):
    """A service that fetches, and a host that it may ask."""
    host = DatasetHost()
    authority = Authority(tmp_path_factory.mktemp("authority"))

    def resolve(name, port):
        return [server.address] if name == "data.example" else ["127.0.0.1"]

    with serving(host.talk, authority.issue("data.example").server()) as server:
        named = AllowedHosts.read(f"data.example:{PORT}")
        outgoing = OutboundClient(named, resolve, authority.client(), fetches=True)
        home = tmp_path_factory.mktemp("a home")
        with serve_here(home, outgoing=outgoing) as service, service.client() as client:
            yield service, client, host, server


@pytest.fixture
def host(fetching):
    host = fetching[2]
    host.__init__()
    return host


def _fetched(client, name="flickr", url=URL, data=TAR):
    asked = {"url": url, "digest": digest(data)}
    return client.post(f"/v1/datasets/{name}/fetch", json=asked)


def test_a_dataset_at_a_url_is_what_it_is_when_it_is_sent(fetching, host):
    service, client, _, _ = fetching
    answer = _fetched(client)
    assert (answer.status_code, answer.json()["digest"]) == (201, digest(TAR)), answer.text
    assert _fetched(client).status_code == 200
    again = client.put("/v1/datasets/flickr", content=TAR)
    assert (again.status_code, again.json()) == (200, answer.json())
    assert b"GET /flickr.tar?token=secret HTTP/1.1" in host.head
    assert b"authorization" not in host.head.lower()
    assert "token=secret" not in service.log.read_text("utf-8")


def _refused(fetching, *words, code="url_failed", **asked):
    service, client, _, _ = fetching
    answer = _fetched(client, "refused", **asked)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    for word in words:
        assert word in answer.json()["detail"]
    assert not service.leftovers()
    assert client.get("/v1/datasets/refused").status_code == 404


def test_another_file_than_was_named_and_what_is_no_tar_are_refused(fetching, host):
    _refused(fetching, "SHA-256", code="digest_mismatch", data=b"another")
    host.body = b"<html>" * 1000
    _refused(fetching, code="invalid_dataset", data=host.body)


def test_more_bytes_or_seconds_than_may_be_are_refused(fetching, host, monkeypatch):
    monkeypatch.setattr(dataset_fetches, "MOST_BYTES", 1000)
    _refused(fetching, "at most 1000 bytes")
    monkeypatch.undo()
    monkeypatch.setattr(dataset_fetches, "SECONDS", 0.2)
    host.waits = Event()
    _refused(fetching, "in time")
    host.waits.set()


@pytest.mark.parametrize("url", ["https://inside.example/x.tar", "http://data.example/"])
def test_a_url_that_leads_inside_or_may_not_be_is_refused(fetching, host, url):
    _refused(fetching, code="url_refused", url=url)


def test_who_is_one_too_many_comes_back_later(fetching, host):
    """Others are answered meanwhile."""
    _, client, _, _ = fetching
    host.waits = Event()
    answers = []
    threads = []
    for number in range(dataset_fetches.AT_ONCE):
        host.begun.clear()
        threads.append(Thread(target=lambda at=number: answers.append(_fetched(client, f"n{at}"))))
        threads[-1].start()
        assert host.begun.wait(10)
    late = _fetched(client, "late")
    assert (late.status_code, late.json()["code"]) == (503, "overloaded")
    assert client.get("/v1/datasets").status_code == 200
    host.waits.set()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [201] * dataset_fetches.AT_ONCE


def test_the_client_and_its_command_let_it_be_fetched(fetching, host):
    service, _, _, _ = fetching
    with prescore.Client(service.url) as asking:
        assert str(asking.fetch_dataset("own", URL, digest(TAR))) == "own@v1"
    words = ["datasets", "fetch", "own", "-", "--digest", digest(TAR), "--url", service.url]
    told = CliRunner().invoke(command_app.prescore(), words, input=f"{URL}\n")
    assert (told.exit_code, "own@v1" in told.stdout) == (0, True), told.output
    host.status = 404
    refused = CliRunner().invoke(command_app.prescore(), [*words[:3], URL, *words[4:]])
    assert (refused.exit_code, "found 404" in refused.output) == (2, True), refused.output
