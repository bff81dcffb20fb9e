"""Connections whose clients are too slow are closed, and all others stay (patience made short)."""

import asyncio
import contextlib
import itertools
import socket
import threading
import time

import pytest
import uvicorn

from helpers.fleet import until
from service.contract import limits
from service.http import access
from service.http.middleware import connections
from service.http.middleware.connections import BoundedConnection

PATIENCE = 0.3
ENOUGH = int(limits.SLOWEST * PATIENCE)
POST = b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
CHUNKED = b"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


(OPEN,) = access.OPEN_TO_POST
WAITING = []  # requests whose client waits for an answer


class _Impatient(BoundedConnection):
    patience = PATIENCE


async def _app(scope, receive, send):
    """/read and OPEN read the body, /refuse does not, /late begins to read after a while, /much
    answers with more than a socket takes, /wait waits for the client's end.
    """
    path = scope["path"]
    if path == "/late":
        await asyncio.sleep(4 * PATIENCE)
    if path in ("/read", "/late", "/wait", OPEN):
        while (await receive()).get("more_body"):
            pass
    if path == "/wait":
        WAITING.append(scope)
        await receive()
        WAITING.remove(scope)
    body = b"x" * (50_000_000 if path == "/much" else 2)
    await send(
        {
            "type": "http.response.start",
            "status": 413 if path == "/refuse" else 200,
            "headers": [(b"content-length", str(len(body)).encode())],
        }
    )
    for start in range(0, len(body), 1 << 16):
        more = start + (1 << 16) < len(body)
        message = {"type": "http.response.body", "body": body[start : start + (1 << 16)]}
        await send({**message, "more_body": more})


@pytest.fixture(scope="module")
def server():
    config = uvicorn.Config(
        _app, http=_Impatient, ws="none", lifespan="off", log_config=None, timeout_keep_alive=60
    )
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        until(lambda: server.started, 10, "a server")
        server.port = listener.getsockname()[1]
        yield server
        server.should_exit = True
        thread.join()


@pytest.fixture
def connect(server):
    with contextlib.ExitStack() as stack:

        def one(first=b"", host="127.0.0.1"):
            place = "127.0.0.1", server.port
            connection = socket.create_connection(place, timeout=20, source_address=(host, 0))
            stack.enter_context(connection)
            with contextlib.suppress(ConnectionError):  # it may be refused before all is sent
                connection.sendall(first)
            return connection

        yield one


@pytest.fixture
def patient(monkeypatch):
    """For tests of clients that are fast enough: this machine may pause them for a while."""
    monkeypatch.setattr(_Impatient, "patience", 4 * PATIENCE)


def _answer(connection):
    received = b""
    while not received.endswith(b"\r\n\r\nxx"):
        received += connection.recv(1 << 16)
    return received


def _until_closed(connection):
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(1 << 16):
            received += data
    return received


@pytest.mark.parametrize("first", [b"", b"\r\n"], ids=["nothing", "an empty line"])
def test_who_asks_nothing_is_closed(connect, first):
    assert _until_closed(connect(first)) == b""


@pytest.mark.long
@pytest.mark.parametrize(
    "first",
    [b"GET /read", POST[:40], POST + b"x" * 10, CHUNKED, CHUNKED + b"2\r\nx", CHUNKED + b"2;a="],
)
def test_who_does_not_go_on_is_refused(connect, first):
    answer = _until_closed(connect(first))
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b'"code":"request_timeout"' in answer
    assert b"connection: close" in answer


def _sent_slowly(connection, pieces):
    """What is answered while or after the pieces are sent, ten in the time of patience."""
    connection.settimeout(PATIENCE / 10)
    for piece in pieces:
        try:
            connection.sendall(piece)
            return connection.recv(1 << 16)
        except TimeoutError:
            continue
        except OSError:
            return b""
    connection.settimeout(20)
    return connection.recv(1 << 16)


_WAITS = b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("last", [b"no request\r\n\r\n", None], ids=["no request", "the end"])
def test_requests_one_after_the_other_end_with_their_connection(connect, caplog, last):
    connection = connect(_WAITS + _WAITS)
    until(lambda: WAITING, 20, "a request")
    if last is None:
        connection.shutdown(socket.SHUT_WR)
    else:
        connection.sendall(last)
    _until_closed(connection)
    until(lambda: not WAITING, 20, "its end")
    connect(b"GET /read HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").recv(1)
    assert not [each for each in caplog.records if each.exc_info]


@pytest.mark.long
@pytest.mark.parametrize("first", [b"GET /read HTTP/1.1\r\nA: ", POST], ids=["header", "body"])
def test_who_goes_on_too_slowly_is_refused(connect, first):
    assert b" 408 " in _sent_slowly(connect(first), itertools.repeat(b"a"))


@pytest.mark.long
@pytest.mark.usefixtures("patient")
def test_a_body_that_is_fast_enough_is_read(connect):
    faster = [b"x" * ENOUGH] * 60
    started = POST + b"x" * (100_000 - len(b"".join(faster)))
    assert b" 200 " in _sent_slowly(connect(started), faster)


@pytest.mark.long
def test_who_waits_for_the_service_is_not_closed(connect):
    """The service reads late, or answers late: and with `Expect`, the client waits before it
    sends.
    """
    late = POST.replace(b"/read", b"/late")
    expects = late.replace(b"Host", b"Expect: 100-continue\r\nHost")
    held_up, waiting = connect(late + b"x" * 99_999), connect(expects)
    assert waiting.recv(100).startswith(b"HTTP/1.1 100 ")
    waiting.sendall(b"x" * 100_000)
    assert waiting.recv(100).startswith(b"HTTP/1.1 200 ")
    held_up.sendall(b"x")
    assert held_up.recv(100).startswith(b"HTTP/1.1 200 ")
    answered = connect(POST.replace(b"/read", b"/wait") + b"x" * 100_000)
    answered.settimeout(4 * PATIENCE)
    with pytest.raises(TimeoutError):
        answered.recv(1)


@pytest.mark.long
def test_who_takes_no_answer_is_closed(connect):
    connection = connect(POST.replace(b"/read", b"/much") + b"x" * 100_000)
    threading.Event().wait(3 * PATIENCE)
    assert len(_until_closed(connection)) < 50_000_000


@pytest.mark.long
@pytest.mark.usefixtures("patient")
def test_who_takes_an_answer_slowly_gets_it(connect):
    connection = connect(POST.replace(b"/read", b"/much") + b"x" * 100_000)
    connection.settimeout(PATIENCE)
    received = 0
    began = time.monotonic()
    while received < 50_000_000:
        received += len(connection.recv(1 << 20))
        if time.monotonic() - began < 9 * PATIENCE:
            threading.Event().wait(PATIENCE / 10)
    assert received >= 50_000_000


@pytest.mark.long
def test_the_rest_of_a_refused_body_is_dropped_for_a_while(connect):
    connection = connect(POST.replace(b"/read", b"/refuse") + b"x" * 10)
    assert _answer(connection).startswith(b"HTTP/1.1 413 ")
    assert _sent_slowly(connection, itertools.repeat(b"x" * 10)) == b""


def test_a_connection_goes_on_after_a_refused_body_has_come(connect):
    connection = connect(POST.replace(b"/read", b"/refuse") + b"x" * 100_000)
    assert _answer(connection).startswith(b"HTTP/1.1 413 ")
    connection.sendall(POST + b"x" * 100_000)
    assert _answer(connection).startswith(b"HTTP/1.1 200 ")


LONG = b"a" * (1 << 20)


@pytest.mark.parametrize(
    "first",
    [
        b"GET /" + LONG,
        b"GET / HTTP/1.1\r\n" + LONG + b": a\r\n",
        b"GET / HTTP/1.1\r\nA: " + LONG,
        b"GET / HTTP/1.1\r\n" + b"A: a\r\n" * (1 << 15),
        CHUNKED + b"2;a=" + LONG,
        CHUNKED + b"0\r\nA: " + LONG,
    ],
    ids=["address", "name", "value", "many", "chunk's extension", "trailer"],
)
def test_a_header_that_is_too_long_is_refused(connect, first):
    answer = _until_closed(connect(first + b"a" * 100))
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b'"code":"header_too_long"' in answer


@pytest.mark.parametrize(
    ("size", "status"), [(60_000, b"200"), (66_000, b"431"), (130_000, b"431")]
)
@pytest.mark.parametrize("before", [b"", POST + b"a" * 100_000], ids=["first", "second"])
def test_a_header_that_arrives_at_once_is_counted(connect, before, size, status):
    connection = connect(before)
    if before:
        _answer(connection)
    lines = b"".join(b"A%d: %s\r\n" % (at, b"a" * 990) for at in range(size // 1000))
    connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n")
    assert connection.recv(100).startswith(b"HTTP/1.1 " + status)


def test_chunks_of_one_byte_are_a_body(connect):
    connection = connect(CHUNKED + b"1\r\na\r\n" * 50_000 + b"0\r\n\r\n")
    assert connection.recv(100).startswith(b"HTTP/1.1 200 ")


def test_idle_connections_make_room_the_oldest_first(server, connect, monkeypatch):
    def in_header():
        return sum(one._in_header for one in list(server.server_state.connections))

    monkeypatch.setattr(_Impatient, "patience", 60)
    monkeypatch.setattr(connections, "find_connection_limit", lambda: 3)
    until(lambda: not server.server_state.connections, 20, "the end of those before")
    waiting = connect(POST.replace(b"/read", b"/wait") + b"x" * 100_000)
    until(lambda: len(WAITING) == 1, 20, "a request")
    old = connect(b"GET /read HTTP/1.1\r\n")
    until(lambda: in_header() == 1, 20, "a header's beginning")
    newer = connect(b"GET /read HTTP/1.1\r\n")
    until(lambda: in_header() == 2, 20, "another one")
    another = connect(POST.replace(b"/read", b"/wait") + b"x" * 100_000)
    assert _until_closed(old) == b""
    until(lambda: len(WAITING) == 2, 20, "another request")
    newer.sendall(b"\r\n")
    assert newer.recv(100).startswith(b"HTTP/1.1 200 ")
    newer.sendall(POST.replace(b"/read", b"/wait") + b"x" * 100_000)
    until(lambda: len(WAITING) == 3, 20, "a third request")
    answer = _until_closed(connect(b"GET /read HTTP/1.1\r\n\r\n"))
    assert b'"code":"overloaded"' in answer
    for connection in (waiting, another):
        connection.settimeout(0.01)
        with pytest.raises(TimeoutError):
            connection.recv(1)


WAIT = POST.replace(b"/read", b"/wait") + b"x" * 100_000
HEALTH = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def full(server, monkeypatch):
    """A function that fills the server with requests in progress, at most `most` of all."""
    monkeypatch.setattr(_Impatient, "patience", 60)
    until(lambda: not server.server_state.connections, 20, "the end of those before")

    def fill(most):
        monkeypatch.setattr(connections, "find_connection_limit", lambda: most)

    return fill


def _begin_waiting(connect, many, host="127.0.0.1"):
    """Requests in progress, the oldest first."""
    begun = []
    for _ in range(many):
        before = len(WAITING)
        begun.append(connect(WAIT, host))
        until(lambda before=before: len(WAITING) > before, 20, "a request")
    return begun


def test_the_address_with_most_requests_gives_way_its_newest_first(connect, full):
    full(4)
    theirs = _begin_waiting(connect, 4, "127.0.0.2")
    answers = [_ask(connect(HEALTH, host)) for host in ("127.0.0.1", "127.0.0.3")]
    assert answers == [b"HTTP/1.1 200 OK"] * 2
    assert b'"code":"overloaded"' in _until_closed(theirs[3])
    assert _are_open(theirs[:2])


def test_a_connection_that_has_just_come_does_not_give_way_to_another_address(
    connect, full, monkeypatch
):
    """It has sent nothing yet, as those that wait for the next request have."""
    monkeypatch.setattr(connections, "_NEW_SECONDS", 60.0)
    full(3)
    theirs = _begin_waiting(connect, 2, "127.0.0.2")
    just_come = connect(b"", "127.0.0.1")
    theirs.append(connect(WAIT, "127.0.0.2"))
    assert b'"code":"overloaded"' in _until_closed(theirs[2])
    assert _ask_again(just_come) == b"HTTP/1.1 200 OK"
    assert _are_open(theirs[:2])


def _ask_again(connection):
    connection.sendall(HEALTH)
    return connection.recv(1000).partition(b"\r\n")[0]


def test_requests_for_health_are_answered_where_nothing_else_is(connect, full):
    full(3)
    theirs = _begin_waiting(connect, 3)
    assert b'"code":"overloaded"' in _until_closed(connect(b"GET /read HTTP/1.1\r\n\r\n"))
    assert _ask(connect(HEALTH)) == b"HTTP/1.1 200 OK"
    assert _are_open(theirs)


def test_places_for_health_are_bounded(connect, full, monkeypatch):
    monkeypatch.setattr(connections, "_HEALTH_PLACES", 0)
    full(2)
    _begin_waiting(connect, 2)
    assert _ask(connect(HEALTH)) == b"HTTP/1.1 503 Service Unavailable"


def test_the_body_of_an_open_request_has_few_seconds(connect, monkeypatch):
    """However fast it comes."""
    monkeypatch.setattr(_Impatient, "patience", 60)
    monkeypatch.setattr(limits, "OPEN_SECONDS", 0.3)
    connection = connect(POST.replace(b"/read", OPEN.encode()))
    assert b" 408 " in _sent_slowly(connection, [b"x" * ENOUGH] * 100)


def _ask(connection):
    return connection.recv(100).partition(b"\r\n")[0]


def _are_open(those):
    for connection in those:
        connection.settimeout(0.01)
        with pytest.raises(TimeoutError):
            connection.recv(1)
    return True
