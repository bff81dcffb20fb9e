"""T50: URLs that lead inside, or elsewhere than they seem to, are refused without connecting."""

import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from helpers.tls_servers import PORT, read_request, serving
from service.contract.errors import InvalidSetting, UrlFailed, UrlRefused
from service.outbound.client import OutboundClient
from service.outbound.destinations import AllowedHosts

HOOK = f"https://hooks.example:{PORT}/some/place?token=1"
NAMED = AllowedHosts.read(f"hooks.example:{PORT}")
_CONNECTED: list[object] = []
_WATCHING = threading.local()


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect" and getattr(_WATCHING, "on", False):
        _CONNECTED.append(arguments[1])


sys.addaudithook(_audit)  # Python itself tells of every connection


@contextmanager
def no_connection() -> Iterator[None]:
    _CONNECTED.clear()
    _WATCHING.on = True
    try:
        yield
    finally:
        _WATCHING.on = False
    assert _CONNECTED == []


@pytest.fixture(scope="module")
def issued(authority):
    return authority.issue("hooks.example")


def _leads_to(*addresses, calls=None):
    def resolve(host, port):
        if calls is not None:
            calls.append((host, port))
        return addresses

    return resolve


def _never(host, port):
    raise AssertionError(f"{host} was looked up")


def _post(client, url, seconds=5.0):
    return client.post(url, {"Content-Type": "application/json"}, b"{}", seconds)


def _answers(text):
    def talk(near):
        read_request(near)
        near.sendall(text)

    return talk


@contextmanager
def _served(authority, issued, talk):
    with serving(talk, issued.server()) as server:
        yield OutboundClient(NAMED, _leads_to(server.address), authority.client())


OK = b"HTTP/1.1 204 No Content\r\n\r\n"

INSIDE = {  # more of them: test_addresses.py
    "private": ["10.1.2.3"],
    "metadata": ["169.254.169.254"],
    "public and loopback": ["93.184.216.34", "127.0.0.1"],
    "no address": ["localhost"],
    "nothing": [],
}


@pytest.mark.parametrize("addresses", INSIDE.values(), ids=INSIDE)
def test_a_name_that_leads_inside_is_refused_without_connecting(addresses):
    client = OutboundClient(resolve=_leads_to(*addresses))
    with no_connection(), pytest.raises(UrlRefused, match="an address that is not public"):
        _post(client, "https://hooks.example/")


URLS = {
    "another scheme": [f"{s}//hooks.example/" for s in ("http:", "file:", "gopher:", "")],
    "an address": ["127.0.0.1:8443", "0.0.0.0", "169.254.169.254", "10.0.0.1"],
    "a number": ["2130706433", "0x7f000001", "0x7f.0x0.0x0.0x1", "0177.0.0.1", "127.000.000.001"],
    "of too few or too many parts": ["127.1", "1.127.0.0.1", "localhost", "redis", "", ":443"],
    "a dot at its end": ["127.0.0.1.", "hooks.example."],
    "of IPv6": ["[::1]", "[fe80::1%25eth0]", "[2606:4700:4700:0:0:0:0:1111]", "[::127.0.0.1]"],
    "with a user": ["hooks.example@127.0.0.1", "me:secret@hooks.example"],
    "with a backslash": ["hooks.example\\@127.0.0.1", "hooks.example/\\127.0.0.1"],
    "with a fragment": ["hooks.example/#@127.0.0.1"],
    "with a blank": [
        "hooks.example/ HTTP/1.1",
        "hooks\t.example",
        "hooks.example/\r\nHost: inside",
    ],
    "with a NUL": ["hooks.example/\0"],
    "with another port": [f"hooks.example:{port}" for port in (6379, 0, 65536, "")],
    "of another alphabet": ["127。0。0。1", "１２７.0.0.1", "höoks.example", "ⓛocalhost.example"],
    "odd": ["127%2e0.0.1", "a_b.example", "-a.example", "hooks..example"],
    "too long": [f"hooks.example/{'a' * 2000}", f"{'a' * 64}.example"],
}
ALL_URLS = [at if "//" in at else f"https://{at}/" for found in URLS.values() for at in found]


@pytest.mark.parametrize("url", [*ALL_URLS, ""])
def test_a_url_that_leads_inside_or_is_read_in_two_ways_is_refused_before_it_is_looked_up(url):
    with no_connection(), pytest.raises(UrlRefused):
        _post(OutboundClient(resolve=_never), url)


@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:127.0.0.1"])
def test_a_host_that_the_operator_names_may_be_inside_and_no_place_of_credentials(address):
    with no_connection(), pytest.raises(UrlRefused, match="not public"):
        _post(OutboundClient(NAMED, _leads_to(address)), HOOK)


def test_a_named_host_is_asked_at_the_address_that_was_judged_and_looked_up_once(authority, issued):
    heads, calls = [], []

    def talk(near):
        heads.append(read_request(near))
        near.sendall(b"HTTP/1.1 200 OK\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n")

    with serving(talk, issued.server()) as server:
        resolve = _leads_to(server.address, calls=calls)
        answer = _post(OutboundClient(NAMED, resolve, authority.client()), HOOK)
    assert (answer.status, answer.headers["retry-after"]) == (200, "3")
    ((head, body),) = heads
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /some/place?token=1 HTTP/1.1"
    assert f"Host: hooks.example:{PORT}" in lines
    assert body == b"{}"
    assert calls == [("hooks.example", PORT)]


def test_a_name_that_means_another_address_a_moment_later_is_not_followed(authority, issued):
    with (
        serving(_answers(OK), issued.server()) as first,
        serving(_answers(OK), issued.server()) as second,
    ):
        later = iter([[first.address], [second.address]])
        client = OutboundClient(NAMED, lambda host, port: next(later), authority.client())
        assert _post(client, HOOK).status == 204
        assert (first.connections, second.connections) == (1, 0)


def test_a_port_that_the_operator_has_not_named_is_refused():
    with no_connection(), pytest.raises(UrlRefused, match=f"expected port {PORT}, found 443"):
        _post(OutboundClient(NAMED, _never), "https://hooks.example/")


@pytest.mark.parametrize("setting", ["a b", "https://a.example", "a.example:x", "a_b"])
def test_a_setting_that_is_no_host_is_told(setting):
    with pytest.raises(InvalidSetting, match="PRESCORE_OUTGOING_ALLOW"):
        AllowedHosts.read(setting)


@pytest.mark.parametrize(
    ("issue", "told"),
    [
        (lambda known: known.issue("other.example"), "certificate is not valid: Hostname mismatch"),
        (lambda known: known.issue("hooks.example", expired=True), "certificate has expired"),
    ],
)
def test_a_certificate_of_another_name_or_time_is_refused(authority, issue, told):
    with (
        _served(authority, issue(authority), _answers(OK)) as client,
        pytest.raises(UrlFailed, match=told),
    ):
        _post(client, HOOK)


def test_an_authority_that_this_machine_does_not_know_is_refused(issued):
    with serving(_answers(OK), issued.server()) as server:
        client = OutboundClient(NAMED, _leads_to(server.address))
        with pytest.raises(UrlFailed, match="unable to get local issuer certificate"):
            _post(client, HOOK)


def test_a_server_without_tls_gets_no_request():
    received = []

    def talk(near):
        received.append(near.recv(1000))
        near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    with serving(talk, None) as server, pytest.raises(UrlFailed, match="does not speak TLS"):
        _post(OutboundClient(NAMED, _leads_to(server.address)), HOOK)
    assert b"/some/place" not in received[0]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_not_followed(authority, issued, status):
    head = f"HTTP/1.1 {status} X\r\nLocation: https://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"
    with serving(_answers(head.encode()), issued.server()) as server:
        calls = []
        client = OutboundClient(NAMED, _leads_to(server.address, calls=calls), authority.client())
        assert _post(client, HOOK).status == status
        assert (server.connections, len(calls)) == (1, 1)


def test_proxies_and_passwords_of_the_environment_are_not_used(
    authority, issued, monkeypatch, tmp_path
):
    heads = []

    def talk(near):
        heads.append(read_request(near)[0])
        near.sendall(OK)

    (tmp_path / ".netrc").write_text("machine hooks.example login me password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving(_answers(OK), issued.server()) as proxy, serving(talk, issued.server()) as server:
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{proxy.address}:{PORT}")
        _post(OutboundClient(NAMED, _leads_to(server.address), authority.client()), HOOK)
        assert (proxy.connections, server.connections) == (0, 1)
    assert b"authorization" not in heads[0].lower()


def _fetch(client, most=1000, seconds=5.0):
    with client.fetched(HOOK, {}, most, seconds) as chunks:
        return b"".join(chunks)


BODY = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"400\r\n%b\r\n" % (
    b"x" * 1024
)


def test_a_body_is_fetched_as_it_is(authority, issued):
    with _served(authority, issued, _answers(BODY % 5 + b"hello")) as client:
        assert _fetch(client) == b"hello"


WRONG = {
    "too large": (BODY % 2000 + b"x" * 2000, "at most 1000 bytes"),
    "endless": (ENDLESS, "at most 1000 bytes"),
    "cut off": (BODY % 9 + b"hello", "as HTTP is spoken"),
    "compressed": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
        "a Content-Encoding",
    ),
    "not there": (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "found 404"),
    "moved": (b"HTTP/1.1 302 X\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "found 302"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "as HTTP is spoken"),
    "endless headers": (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 100_000, "too large|as HTTP"),
    "endless beginnings": (b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000, "too large"),
    "nothing": (b"", "as HTTP is spoken"),
}


@pytest.mark.parametrize(("sent", "told"), WRONG.values(), ids=WRONG)
def test_an_answer_that_is_too_much_or_no_answer_is_refused(authority, issued, sent, told):
    with (
        _served(authority, issued, _answers(sent)) as client,
        pytest.raises(UrlFailed, match=told),
    ):
        _fetch(client)


def _drips(near):
    read_request(near)
    near.sendall(b"HTTP/1.1 200 OK\r\n")
    end = threading.Event()
    for _ in range(200):
        near.sendall(b"A: b\r\n")
        end.wait(0.03)


def _silent(near):
    while near.recv(1000):
        pass


@pytest.mark.parametrize(("talk", "encrypted"), [(_drips, True), (_silent, True), (_silent, False)])
def test_time_is_bounded_as_a_whole_and_not_only_for_each_byte(authority, issued, talk, encrypted):
    context = issued.server() if encrypted else None
    with serving(talk, context) as server:
        client = OutboundClient(NAMED, _leads_to(server.address), authority.client())
        began = time.monotonic()
        with pytest.raises(UrlFailed, match="in time"):
            _post(client, HOOK, seconds=0.3)
        assert time.monotonic() - began < 3


def test_a_name_that_is_looked_up_for_too_long_is_given_up():
    end = threading.Event()

    def hangs(host, port):
        end.wait(10)
        return []

    with no_connection(), pytest.raises(UrlFailed, match="was not found in time"):
        _post(OutboundClient(resolve=hangs), "https://hooks.example/", seconds=0.1)
    end.set()


@pytest.mark.parametrize(
    "error", [socket.gaierror(-2, "unknown"), UnicodeError("label empty or too long")]
)
def test_a_name_that_does_not_exist_is_told(error):
    def absent(host, port):
        raise error

    with no_connection(), pytest.raises(UrlFailed, match=r"hooks\.example was not found"):
        _post(OutboundClient(resolve=absent), "https://hooks.example/")


def test_the_next_address_is_tried_where_one_does_not_answer(authority, issued):
    with serving(_answers(OK), issued.server()) as server:
        client = OutboundClient(NAMED, _leads_to("127.1.1.1", server.address), authority.client())
        assert _post(client, HOOK).status == 204


def test_without_a_context_certificates_are_checked():
    assert OutboundClient()._context.verify_mode is ssl.CERT_REQUIRED
    assert OutboundClient()._context.check_hostname
