"""T58: hundreds of slow clients, idle connections and endless headers: all others are served.

That slow clients are closed, and when: `tests/service/http/test_connections.py`.
"""

import contextlib
import itertools
import resource
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest

from helpers import load_probes
from helpers.fleet import checkpoint, upload
from service.access import keys
from service.contract import limits
from service.contract.askers import Scope

POST = b"POST /v1/evaluations HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BODY = POST + b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
SLOW = {
    "that send nothing": b"",
    "in the middle of a header": POST + b"X-Slow: a",
    "in the middle of a body": BODY,
    "with a refused body": BODY.replace(b"application/json", b"text/plain"),
    "after an answer": b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "that take no answer": b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 3,
}
LONG = 60_000_000  # bytes of a header
SOME = b"a" * 1_000_000
CHUNKED = POST + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "an address": b"GET /",
    "a name": POST,
    "a value": POST + b"X-Long: ",
    "a chunk's extension": CHUNKED + b"2;a=",
    "a trailer": CHUNKED + b"0\r\nA: ",
}


@contextlib.contextmanager
def _slow(fleet, firsts):
    """Connections that send a beginning, and then nothing."""
    with contextlib.ExitStack() as stack:
        for first in firsts:
            address = ("127.0.0.1", httpx.URL(fleet.url).port)
            connection = stack.enter_context(socket.create_connection(address, timeout=60))
            connection.sendall(first)
        yield


def _served(fleet, seconds):
    """How long each new client waits that comes meanwhile."""
    waited = []
    over = time.monotonic() + seconds
    while not waited or time.monotonic() < over:
        began = time.monotonic()
        assert httpx.get(f"{fleet.url}/v1/evaluations?limit=1", timeout=60).status_code == 200
        waited.append(time.monotonic() - began)
    return waited


def test_hundreds_of_slow_clients_delay_nobody(fleet):
    firsts = itertools.islice(itertools.cycle(SLOW.values()), 400)
    with _slow(fleet, firsts):
        _served(fleet, 0)  # until what they have sent is read
        waited = _served(fleet, 2)
    print(
        f"T58 beside 400 slow clients: {load_probes.p99(waited):.3f} s, at most {max(waited):.3f}"
    )
    assert load_probes.p99(waited) < 1


@pytest.mark.slow
def test_whoever_is_closed_delays_nobody(fleet):
    """T58: 400 clients, until the service's patience with them ends, and all are closed at once."""
    firsts = itertools.islice(itertools.cycle(SLOW.values()), 400)
    with load_probes.served(fleet, "400 slow clients"), _slow(fleet, firsts):
        _served(fleet, 2 * limits.PATIENCE + 5)


@pytest.mark.parametrize("kind", ["that send nothing", "in the middle of a header"])
def test_idle_connections_lock_nobody_out(fleet, kind):
    """Where the service may open few files, connections without a request make room for others."""
    api = fleet.find("api")
    usual = api.rlimit(resource.RLIMIT_NOFILE)
    api.rlimit(resource.RLIMIT_NOFILE, (100, usual[1]))
    try:
        with _slow(fleet, [SLOW[kind]] * 200):
            waited = _served(fleet, 1)
    finally:
        api.rlimit(resource.RLIMIT_NOFILE, usual)
    print(f"T58 beside 200 connections {kind}, 100 files: at most {max(waited):.3f} s")
    assert max(waited) < 1


def _until_closed(fleet, beginning):
    """After how many seconds the connection is closed, when `LONG` bytes more are sent."""
    address = ("127.0.0.1", httpx.URL(fleet.url).port)
    began = time.monotonic()
    with (
        socket.create_connection(address, timeout=60) as connection,
        contextlib.suppress(ConnectionError),
    ):
        connection.sendall(beginning)
        for _ in range(LONG // len(SOME)):
            connection.sendall(SOME)
        while connection.recv(1 << 16):
            pass
    return time.monotonic() - began


def test_an_endless_header_is_refused_at_once(fleet):
    with load_probes.asked(f"{fleet.url}/v1/evaluations?limit=1", 0.02) as waited:
        seconds = _until_closed(fleet, POST + b"X-Long: ")
    print(f"T58 a header of 60 MB: {seconds:.2f} s, others at most {max(waited):.2f} s")
    assert seconds < 5  # most of it is the sending, and other tests compute meanwhile
    assert max(waited) < 5  # a server that reads it all stands for 11 s and longer


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENDLESS)
def test_endless_headers_delay_nobody(fleet, kind):
    """T58: wherever a header may be endless, by ten clients at once, again and again."""
    longest = 0.0
    with load_probes.served(fleet, f"ten endless headers, {kind}"), ThreadPoolExecutor(10) as pool:
        over = time.monotonic() + 10
        while time.monotonic() < over:
            beginnings = [ENDLESS[kind]] * 10
            longest = max(longest, *pool.map(partial(_until_closed, fleet), beginnings))
    print(f"T58 ten endless headers, {kind}: at most {longest:.2f} s")
    assert longest < 5


SLOW_KEY = (
    b"POST /v1/keys/oidc HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 40000\r\n\r\n"
)


PRESSING = """
import selectors, socket, sys, time
port, many = int(sys.argv[1]), int(sys.argv[2])
first, piece = sys.argv[3].encode(), sys.argv[4].encode()
those = {}
while True:
    while len(those) < many:
        made = socket.create_connection(("127.0.0.1", port), 20, source_address=("127.0.0.9", 0))
        made.setblocking(False)
        those[made.fileno()] = made
        made.send(first)
    time.sleep(0.2)
    for number, one in list(those.items()):
        try:
            one.send(piece)
            if one.recv(4096):
                continue
        except BlockingIOError:
            continue
        except OSError:
            pass
        one.close()
        del those[number]
"""  # of one address, in a process of its own: each is opened again when it is closed


@contextlib.contextmanager
def _pressed(fleet, first, piece=b"", many=limits.CONNECTIONS + 10):
    """1,010 connections of one address that send this and, every .2 s, a piece."""
    asked = str(httpx.URL(fleet.url).port), str(many)
    command = [sys.executable, "-c", PRESSING, *asked, first.decode(), piece.decode()]
    pressing = subprocess.Popen(command)
    try:
        yield
        assert pressing.poll() is None, "it has ended"
    finally:
        pressing.kill()
        pressing.wait()


def _check_served(fleet, headers):
    """For a minute: others' health checks and polls."""
    alive, polls = [], []
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for name, taken in (("livez", alive), ("v1/evaluations?limit=1", polls)):
            began = time.monotonic()
            answer = httpx.get(f"{fleet.url}/{name}", timeout=60, headers=headers)
            assert answer.status_code == 200, answer.text
            taken.append(time.monotonic() - began)
        time.sleep(0.05)
    p99 = load_probes.p99(polls)
    print(f"beside 1,010: livez at most {max(alive):.3f} s, polls p99 {p99:.3f} s")
    assert max(alive) < 1
    assert p99 < 0.5


@pytest.mark.slow
def test_slow_requests_for_keys_shut_nobody_out(fleet):
    """Each sends 1.1 kB a second."""
    with _pressed(fleet, SLOW_KEY, b"x" * 220):
        _check_served(fleet, {})


@pytest.mark.slow
@pytest.mark.parametrize("what", ["streams", "long polls", "both"])
def test_who_listens_with_a_key_that_reads_shuts_nobody_out(empty_fleet, what):
    (_, owner), (_, red), (_, blue) = (
        keys.create_key(empty_fleet.records, team, scope)
        for team, scope in (("red", Scope.ADMIN), ("red", Scope.READ), ("blue", Scope.READ))
    )
    empty_fleet.key = owner
    empty_fleet.add_dataset()
    for role in ("inference", "metrics"):
        empty_fleet.find("worker", role).suspend()  # so that the evaluation does not end
    with empty_fleet.client() as client:
        asked = {"checkpoint": upload(client, checkpoint()), "dataset": "tiny/test"}
        answer = client.post("/v1/evaluations", json=asked)
        assert answer.status_code == 202, answer.text
        identity = answer.json()["id"]
    polls = f"GET /v1/evaluations/{identity} HTTP/1.1\r\nPrefer: wait=60\r\n"
    streams = "GET /v1/events HTTP/1.1\r\n"
    rest = f"Host: 127.0.0.1\r\nAuthorization: Bearer {red}\r\n\r\n"
    chosen = {"streams": [streams], "long polls": [polls], "both": [streams, polls]}[what]
    with contextlib.ExitStack() as stack:
        for each in chosen:
            many = (limits.CONNECTIONS + 10) // len(chosen)
            stack.enter_context(_pressed(empty_fleet, f"{each}{rest}".encode(), many=many))
        _check_served(empty_fleet, {"Authorization": f"Bearer {blue}"})
