"""Requests as bytes of a connection, with changes anywhere: each is answered as HTTP in seconds, by
no 5xx but those that say when to come again, in a bounded number of bytes; others are served.
"""

import json
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz import edits
from helpers.fleet import TUS, Fleet, bundle, checkpoint, digest, tus_creation

pytestmark = pytest.mark.processes

SECONDS = float(os.environ.get("PRESCORE_FUZZ_SECONDS", "600"))
FEW, ROUND = 60, 500
PATIENCE = 1.0  # seconds until an answer begins, if one does; a quarter of it between its parts
MOST_HEAD, MOST = 20_000, 4_000_000  # bytes of an answer
GROWN = 300_000_000  # bytes of the API's process
_STATUS = re.compile(rb"HTTP/1\.1 ([0-9]{3}) ")
_REFUSED = {501, 503, 505, 507}  # of 5xx: each tells that nothing was done, and why
COMMON = settings(
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
_JSON = {"Content-Type": "application/json"}


def _write(method: str, path: str, headers: Mapping[str, str] = {}, body: bytes = b"") -> bytes:
    """A right request."""
    fields = {"Host": "127.0.0.1", **headers}
    if body:
        fields.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _list_requests() -> list[bytes]:
    model = checkpoint(seed=90)
    asked = {"checkpoint": digest(model), "dataset": "tiny@v1/test", "metrics": ["nll"]}
    evaluation = json.dumps(asked).encode()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(evaluation), evaluation)
    reads = ("/", "/livez", "/readyz", "/metrics", "/openapi.json", "/v1/limits", "/v1/datasets")
    reads += ("/v1/evaluations?limit=2&label=a:b", "/v1/evaluations/none", "/v1/checkpoints")
    reads += ("/v1/datasets/tiny@v1", "/v1/leaderboard?dataset=tiny@v1/test&metric=nll&cursor=x")
    reads += ("/v1/uploads", "/v1/workers", "/v1/events", "/docs", "/v1/metrics", "/v1/keys")
    return [
        *(_write("GET", path) for path in reads),
        _write("GET", "/v1/evaluations/none", {"Prefer": "wait=1", "If-None-Match": '"3"'}),
        _write("GET", "/v1/evaluations/none/events", {"Last-Event-ID": "1"}),
        _write("POST", "/v1/evaluations", {**_JSON, "Idempotency-Key": '"a"'}, evaluation),
        _write("POST", "/v1/evaluations", {**_JSON, "Transfer-Encoding": "chunked",
                                           "Content-Length": "0"}, chunked).replace(
            b"Content-Length: 0\r\n", b""),
        _write("PUT", f"/v1/checkpoints/{digest(model)}", {"Expect": "100-continue"}, model),
        _write("PUT", "/v1/datasets/another", {}, bundle(3)),
        _write("POST", "/v1/uploads", tus_creation(10, kind="checkpoint", digest=digest(model))),
        _write("PATCH", "/v1/uploads/none", {**TUS, "Upload-Offset": "0"}, b"abc"),
        _write("OPTIONS", "/v1/uploads", TUS),
        _write("HEAD", "/v1/uploads/none", TUS),
        _write("DELETE", "/v1/evaluations/none"),
        _write("POST", "/v1/keys/oidc", _JSON, b'{"token": "a.b.c", "team": "red"}'),
        _write("GET", "/v1/page", {"Upgrade": "websocket", "Connection": "Upgrade"}),
    ]  # fmt: skip


REQUESTS = _list_requests()
CHANGED = st.builds(edits.edited, st.sampled_from(REQUESTS), edits.EDITS)
_ENDS = (b"\r\n", b"\n", b"\r", b"\0", b"\r\n\r\n", b": ", b" ", b"\x0b", b"HTTP/1.0", b"HTTP/9.9")
_FIELDS = (
    *(
        b"Host: [\r\n",
        b"Host: a\r\nHost: b\r\n",
        b"Host: \xff\r\n",
        b"Transfer-Encoding: chunked\r\n",
    ),
    *(b"Content-Length: -1\r\n", b"Content-Length: 9\r\nContent-Length: 8\r\n", b" folded\r\n"),
    *(b"Content-Encoding: gzip\r\n", b"Authorization: Bearer \xff\r\n", b"Cookie: a=b\r\n"),
    *(
        b"X-Forwarded-For: [\r\n",
        b"Origin: http://[\r\n",
        b"Origin: null\r\n",
        b"Range: bytes=0-\r\n",
    ),
    *(b"X-Request-ID: " + b"a" * 9000 + b"\r\n", b"Accept: */*;q=a\r\n", b"Prefer: wait=1e9\r\n"),
    *(b"traceparent: 00-0-0-0\r\n", b"Connection: close\r\n", b"A: " + b"b" * 70_000 + b"\r\n"),
    *(b"X-HTTP-Method-Override: \x00\r\n", b"Accept-Encoding: gzip, \xff\r\n"),
)


def _with_field(data: bytes, field: bytes, place: int) -> bytes:
    lines = data.split(b"\r\n")
    at = 1 + place % max(1, len(lines) - 1)
    return b"\r\n".join(lines[:at]) + b"\r\n" + field + b"\r\n".join(lines[at:])


SENT = st.one_of(
    CHANGED,
    st.builds(_with_field, CHANGED, st.sampled_from(_FIELDS), st.integers(0, 6)),
    st.lists(CHANGED, min_size=2, max_size=3).map(b"".join),  # one after the other
    st.builds(lambda data, a, b: data.replace(a, b), CHANGED, *[st.sampled_from(_ENDS)] * 2),
)


def _exchange(port: int, data: bytes, seconds: float = PATIENCE) -> bytes:
    """What comes back for these bytes. What is no whole request is answered by nothing."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        with suppress(TimeoutError, ConnectionError):  # it may be closed before all was sent
            connection.sendall(data)
        with suppress(TimeoutError, ConnectionError):
            while piece := connection.recv(1 << 16):
                connection.settimeout(PATIENCE / 4)
                found += piece
                assert len(found) < MOST, f"an answer of more than {MOST:,} bytes"
    return found


def _check(found: bytes) -> list[int]:
    """The statuses of the answers that came, of which none is a fault of the service."""
    if not found:
        return []
    assert found.startswith(b"HTTP/1.1 "), found[:100]
    head = found.partition(b"\r\n\r\n")[0]
    assert len(head) < MOST_HEAD
    statuses = [int(each) for each in _STATUS.findall(found)]
    for status in statuses:
        assert status < 500 or status in _REFUSED, found[:2000]
    return statuses


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Fleet(tmp_path_factory.mktemp("fleet")) as service:
        service.add_dataset()
        yield service


def _held(service, ends: Counter[int]):
    def hold(data: bytes) -> None:
        ends.update(_check(_exchange(service.port, data)) or [0])

    return hold


def _weigh(service) -> int:
    return service.find("api").memory_info().rss


def _check_service(service, before: int) -> None:
    """It serves others, has grown by little, and has logged no fault."""
    assert httpx.get(f"{service.url}/livez", timeout=1).status_code == 200
    assert _weigh(service) - before < GROWN
    assert "Traceback" not in service.log.read_text("utf-8")


@pytest.mark.parametrize("request_", REQUESTS, ids=range(len(REQUESTS)))
def test_a_right_request_is_answered(request_, service):
    assert _check(_exchange(service.port, request_, seconds=20.0))


def test_what_is_made_up_is_answered_and_others_are_served(service):
    before = _weigh(service)
    few = settings(COMMON, max_examples=FEW, derandomize=True)
    few(given(SENT)(_held(service, Counter())))()
    _check_service(service, before)


@pytest.mark.slow
def test_what_is_made_up_for_long_is_answered_and_others_are_served(service):
    ends: Counter[int] = Counter()
    before = _weigh(service)
    tried = settings(COMMON, max_examples=ROUND, derandomize=False)(
        given(SENT)(_held(service, ends))
    )
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        tried()
        _check_service(service, before)
    print(f"entrance: {dict(sorted(ends.items()))} in {SECONDS:.0f} s")
    assert ends[200]
    assert ends[400]
