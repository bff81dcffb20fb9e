"""HTTP connections with bounds: uvicorn's protocol, with limits that it does not have.

Every `PATIENCE` seconds each connection is looked at. It is closed if its client has not begun a
request since then, has not ended a header, has sent a body more slowly than `SLOWEST`, or has taken
an answer more slowly. What the service itself delays does not count. After a refusal, the rest of
the body is read and dropped for as long, since many clients read an answer only then. A body that
is read before it is known who asks has `OPEN_SECONDS`.

Where there are as many connections as there may be, the address that has most of them gives way to
others; a few more connections are kept for requests for health.
"""

import asyncio
import resource
import time
import uuid
from collections import Counter
from http import HTTPStatus
from operator import attrgetter
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.contract import limits
from service.contract.errors import LongHeader, Overloaded, RequestRefused, SlowRequest
from service.http import problems
from service.http.access import OPEN_TO_POST
from service.http.middleware.access_log import MONITOR_PATHS

# What is around a body may be longer the more there is of the body: in a chunked body that comes
# byte by byte, six are around each.
_AROUND_A_BYTE = 8
_AROUND_A_FIELD = 4  # a colon, a blank, the line's end
_OWN_FILES = 64  # database, Redis, objects, what libraries open
_SLOW = SlowRequest(f"expected a request to arrive with {limits.SLOWEST} bytes a second at least")
_HEALTH_PLACES = 16  # connections beyond all others, for requests for health alone
_NEW_SECONDS = 1.0  # that a connection has for its first request where others need its place
_LONG = LongHeader(f"expected a header of at most {limits.HEADER_BYTES} bytes")
_MANY = Overloaded("the service has as many connections as it may have; try again later")


def raise_file_limit() -> None:
    """Let this process open as many files as it may ever."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))


def find_connection_limit() -> int:
    """Limit connections to `limits.CONNECTIONS`, or fewer where this process may open few files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(8, min(limits.CONNECTIONS, files - _OWN_FILES))


class BoundedConnection(HttpToolsProtocol):
    patience: float = limits.PATIENCE

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.waits_since = time.monotonic()  # when the connection or its last request began
        self._in_header = self._in_body = False
        self._header = 0  # bytes of this request's line and header fields
        self._around = 0  # bytes of it beside its body, without those that came with its beginning
        self._body = 0  # bytes of its body
        self._refused = False  # it was answered before its body had arrived, and a look saw that
        self._arrived = 0  # bytes since the last look
        self._held_up = False  # since then the service took what arrived more slowly than it came
        self._unsent = 0  # bytes of answers that waited to be sent at that look
        self._looking: asyncio.TimerHandle | None = None
        self.is_for_health = False  # there were too many connections when it began
        self._running: RequestResponseCycle | None = None  # others that have come wait behind it

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look_later()
        if len(self.connections) > find_connection_limit():
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._abandon_requests()
        super().connection_lost(exc)

    def eof_received(self) -> None:
        self._abandon_requests()  # the transport closes now

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._arrived += len(data)
        self._around += len(data)
        super().data_received(data)
        self._held_up |= self.flow.read_paused
        if self._around > limits.HEADER_BYTES + _AROUND_A_BYTE * self._body:
            self.refuse(_LONG)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.waits_since = time.monotonic()
        self._in_header = True
        self._refused = False
        self._header = self._around = self._body = 0

    def on_url(self, url: bytes) -> None:
        self._header += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header += len(name) + len(value) + _AROUND_A_FIELD
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_header, self._in_body = False, True
        if self._header > limits.HEADER_BYTES:
            raise _LONG  # the parser stops, and `send_400_response` is called
        if self.is_for_health and not self._asks_for_health():
            raise _MANY
        super().on_headers_complete()
        if self.scope["path"] in OPEN_TO_POST:
            # Half as long where there are most connections: so not all of them end at once, either.
            share = min(1.0, len(self.connections) / find_connection_limit())
            seconds = limits.OPEN_SECONDS * (1 - share / 2)
            self.loop.call_later(seconds, self._end_open_body, self.waits_since, seconds)

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        self._around -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._header > limits.HEADER_BYTES:
            self.refuse(_LONG)
        elif self.is_for_health:
            self.refuse(_MANY)
        else:
            self._abandon_requests()
            super().send_400_response(msg)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unsent = 0

    @property
    def is_idle(self) -> bool:
        """Tell whether there is no request, or not yet a whole header."""
        return self.cycle is None or bool(self.cycle.response_complete)

    @property
    def host(self) -> str:
        """The address of the client, or of the proxy before it."""
        return self.client[0] if self.client else ""

    def _make_room(self) -> None:
        """Close the connection that has waited for a request for longest, but none that has just
        come of another address than the one that has most of them; else the newest request of that
        address; else this connection is for health alone.
        """
        others = [
            other
            for other in self.connections
            if isinstance(other, BoundedConnection)
            and other is not self
            and not other.transport.is_closing()
        ]
        shares = Counter(other.host for other in others)
        host, most = max(shares.items(), key=lambda share: share[1], default=("", 0))
        before = time.monotonic() - _NEW_SECONDS
        idle = [
            other
            for other in others
            if other.is_idle and (other.host == host or other.waits_since < before)
        ]
        if idle:
            min(idle, key=attrgetter("waits_since")).transport.abort()
            return
        if most > shares[self.host] + 1:
            theirs = (other for other in others if other.host == host)
            max(theirs, key=attrgetter("waits_since")).refuse(_MANY)
            return
        self.is_for_health = True
        if sum(other.is_for_health for other in others) >= _HEALTH_PLACES:
            self.refuse(_MANY)

    def _asks_for_health(self) -> bool:
        return self.url.partition(b"?")[0].decode("ascii", "replace") in MONITOR_PATHS

    def _end_open_body(self, since: float, seconds: float) -> None:
        if self._in_body and self.waits_since == since:
            expected = f"the body of a request without a key within {seconds:.1f} seconds"
            self.refuse(SlowRequest(f"expected {expected}"))

    def _look_later(self) -> None:
        self._looking = self.loop.call_later(self.patience, self._look)

    def _look(self) -> None:
        self._look_later()
        waits = time.monotonic() - self.waits_since >= self.patience
        unsent = self.transport.get_write_buffer_size()
        enough = limits.SLOWEST * self.patience
        held_up = self._held_up or self._waits_for_us()
        if unsent and self._unsent and unsent > self._unsent - enough:
            self.transport.abort()
        elif self._in_header and waits:
            self.refuse(_SLOW)
        elif self._in_body and self.is_idle:
            if self._refused:
                self.transport.abort()
            self._refused = True
        elif self._in_body and waits and self._arrived < enough and not held_up:
            self.refuse(_SLOW)
        elif self.cycle is None and waits:
            self.transport.close()
        self._arrived, self._held_up, self._unsent = 0, self._waits_for_us(), unsent

    def _waits_for_us(self) -> bool:
        """Tell whether the client may not send more before the service has read, or has said so."""
        return bool(self.flow.read_paused or (self.cycle and self.cycle.waiting_for_100_continue))

    def refuse(self, error: RequestRefused) -> None:
        is_free = self.is_idle or not self.cycle.response_started
        if is_free and not self.transport.is_closing():
            self.transport.write(_answer(error))
        self._abandon_requests()
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _abandon_requests(self) -> None:
        """Let requests end without an answer: what is written to a closed transport is an error.
        uvicorn knows only the last one of those that came one after the other.
        """
        for cycle in (self._running, self.cycle):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()


def _answer(error: RequestRefused) -> bytes:
    status = HTTPStatus(problems.find_status(type(error)))
    body = problems.write_problem(status, error.code, error.detail, uuid.uuid4().hex).encode()
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", f"content-type: {problems.MEDIA_TYPE}"]
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        lines += [f"{name}: {text}" for name, text in problems.RETRY_LATER.items()]
    lines += [f"content-length: {len(body)}", "connection: close", "", ""]
    return "\r\n".join(lines).encode() + body
