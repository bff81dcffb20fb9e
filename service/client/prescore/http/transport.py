"""Requests to the service over httpx: repeated after failures that may pass, and stoppable."""

import re
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote
from weakref import WeakSet

import httpx
from pydantic import BaseModel

from prescore.errors import InvalidArgument, PrescoreClientError, Unreachable
from prescore.http import answers
from prescore.http.addresses import Address
from prescore.http.answers import Reply
from prescore.http.retries import PASSING, Backoff, may_pass

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
IDLE_CONNECTIONS = 20  # kept open at most
CTRL_C_SECONDS = 0.2  # not every system interrupts a thread that waits for another

_CONNECTED = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")
_CUT = (
    httpx.TimeoutException,
    httpx.NetworkError,
    httpx.RemoteProtocolError,
    httpx.ProxyError,
)
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True)
class HttpRequest:
    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Callable[[], Iterable[bytes]] = b""  # a stream is built again for every attempt
    hold: float = 0.0  # seconds that the service may wait before it answers


class CallStopped(RuntimeError):
    """The client was closed, or the task that awaited this call was canceled."""


class HttpConnection:
    """An httpx client for one request at a time, whose connection any thread can cut."""

    def __init__(self, connecting: Mapping[str, Any]) -> None:
        self._http = httpx.Client(**connecting)
        self._stream: Any = None
        self._is_cut = False

    def send(self, request: HttpRequest) -> httpx.Response:
        """The answer without its body."""
        read = READ_SECONDS + request.hold
        built = self._http.build_request(
            request.method,
            request.path,
            params=dict(request.params) or None,
            headers=dict(request.headers),
            content=request.body if isinstance(request.body, bytes) else request.body(),
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS, read=read),
            extensions={"trace": self._note},
        )
        return self._http.send(built, stream=True)

    def cut(self) -> None:
        """Let the thread that sends or reads there fail at once."""
        self._is_cut = True
        if self._stream is not None:
            with suppress(OSError):
                connected = self._stream.get_extra_info("socket")
                socket.socket.shutdown(
                    connected, socket.SHUT_RDWR
                )  # also of TLS, without a farewell

    def close(self) -> None:
        self._http.close()

    def _note(self, event: str, details: Mapping[str, Any]) -> None:
        if event.endswith(_CONNECTED):
            self._stream = details["return_value"]
            if self._is_cut:
                self.cut()


class Transport:
    """Sends the requests of a client. Safe to share between threads."""

    def __init__(self, address: Address, idle: list[HttpConnection] | None = None) -> None:
        self.address = address
        self._idle = [] if idle is None else idle
        self._in_use: set[HttpConnection] = set()
        self._branches: WeakSet[Transport] = WeakSet()
        self._stopped = threading.Event()

    def branch(self) -> "Transport":
        """A transport over the same connections that can be stopped alone."""
        self.check()
        branch = Transport(self.address, self._idle)
        self._branches.add(branch)
        return branch

    def stop(self) -> None:
        """Let requests, pauses and uploads in other threads raise CallStopped within moments."""
        self._stopped.set()
        for branch in list(self._branches):
            branch.stop()
        for connection in list(self._in_use):
            connection.cut()

    def close(self) -> None:
        self.stop()
        while self._idle:
            self._idle.pop().close()

    def check(self) -> None:
        """Raise where this was stopped."""
        if self._stopped.is_set():
            raise CallStopped("the client was closed, or the call was canceled")

    def sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._stopped.wait(min(left, CTRL_C_SECONDS))
            self.check()

    def get(self, model: type[M], path: str, params: Mapping[str, str] | None = None) -> M:
        return self.send(HttpRequest("GET", path, params or {})).parsed(model)

    def send(
        self,
        request: HttpRequest,
        *,
        patience: float | None = None,
        most: int = answers.ANSWER_BYTES,
    ) -> Reply:
        """The answer; the request is repeated after failures that may pass."""
        return self.repeat(lambda: self.send_once(request, most), patience=patience)

    def repeat(
        self,
        attempt: Callable[[], T],
        *,
        patience: float | None = None,
        statuses: Collection[int] = PASSING,
    ) -> T:
        """Make attempts until one returns, after failures that may pass, for `patience` seconds."""
        longest = self.address.patience
        backoff = Backoff(longest if patience is None else min(patience, longest))
        while True:
            try:
                return attempt()
            except PrescoreClientError as error:
                if not may_pass(error, statuses):
                    raise
                seconds = backoff.after(error)
            self.sleep(seconds)

    def send_once(self, request: HttpRequest, most: int = answers.ANSWER_BYTES) -> Reply:
        """The answer, of at most so many bytes, to one attempt."""
        with self.opened(request) as response:
            return Reply(self.url, response, answers.read_content(self.url, response, most))

    @contextmanager
    def opened(self, request: HttpRequest) -> Iterator[httpx.Response]:
        """The answer to one attempt, without its body; raises for one that is not right."""
        with (
            self._connection() as connection,
            self._translated(),
            closing(connection.send(request)) as response,
        ):
            if not answers.is_right(response):
                raise answers.read_refusal(self.url, response)
            yield response
            self.check()  # what was cut may look as if it had ended

    def pieces(self, response: httpx.Response, most: float) -> Iterator[bytes]:
        return answers.read_pieces(self.url, response, most)

    @property
    def url(self) -> str:
        return self.address.url

    @contextmanager
    def using(self, connection: HttpConnection) -> Iterator[None]:
        """Cut the connection if this is stopped meanwhile."""
        self._in_use.add(connection)
        try:
            self.check()
            yield
        finally:
            self._in_use.discard(connection)

    @contextmanager
    def _connection(self) -> Iterator[HttpConnection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = HttpConnection(self.address.client_options)
        try:
            with self.using(connection):
                yield connection
        finally:
            if self._stopped.is_set() or len(self._idle) >= IDLE_CONNECTIONS:
                connection.close()
            else:
                self._idle.append(connection)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise httpx's errors as the client's own."""
        try:
            yield
        except _CUT as error:
            self.check()
            raise Unreachable(self.url, _describe_error(error)) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self.check()
            what = f"{type(error).__name__}: {error}"
            raise answers.build_foreign_error(self.url, what) from error


def quote_segment(text: str) -> str:
    """One segment of a URL's path, quoted so that no text can lead to another path."""
    if text in ("", ".", ".."):
        raise InvalidArgument(f"expected a name or an id, found {text!r}")
    return quote(text, safe="@:")


def _describe_error(error: httpx.HTTPError) -> str:
    return str(error) or re.sub("(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
