"""The client for URLs that users choose: https alone, to public addresses, with bounds.

A name is looked up once, and the connection is made to an address that was judged, so that the name
cannot mean another one a moment later. No redirect is followed, no proxy or password of the
environment is used, and compressed answers are refused.
"""

import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpcore

from service.contract.errors import UrlFailed, UrlRefused
from service.contract.settings import Settings
from service.outbound import addresses, destinations
from service.outbound.addresses import Resolve
from service.outbound.destinations import AllowedHosts, Destination

AGENT = "Prescore"
_HEADER_BYTES = 64 << 10  # of an answer: its headers, and what comes before a body that is not read


@dataclass(frozen=True)
class OutgoingAnswer:
    status: int
    headers: Mapping[str, str]  # names in lower case


@dataclass(frozen=True)
class OutboundClient:
    """Outbound client. `context`: trusted certificates; None: those that this machine trusts, or
    those in SSL_CERT_FILE. `off`: every URL is refused. `fetches`: datasets may be brought by URL.
    """

    named: AllowedHosts = field(default_factory=AllowedHosts)
    resolve: Resolve = addresses.resolve_by_system
    context: ssl.SSLContext | None = None
    off: bool = False
    fetches: bool = False  # datasets

    @classmethod
    def of(cls, settings: Settings) -> "OutboundClient":
        return cls(
            AllowedHosts.read(settings.outgoing_allow),
            off=settings.outgoing == "off",
            fetches=settings.datasets_by_url == "on",
        )

    def check(self, url: str) -> Destination:
        """UrlRefused if a URL can never be asked; nothing is looked up."""
        if self.off:
            raise UrlRefused(
                "this service asks no URLs: its operator has set PRESCORE_OUTGOING=off"
            )
        return destinations.parse_destination(url, self.named)

    def post(
        self, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> OutgoingAnswer:
        """Send a body; of the answer, only status and headers are read."""
        budget = _RequestBudget(seconds, _HEADER_BYTES)
        with self._asked("POST", url, headers, body, budget) as response:
            return _answer(response)

    @contextmanager
    def fetched(
        self, url: str, headers: Mapping[str, str], most: int, seconds: float
    ) -> Iterator[Iterator[bytes]]:
        """The body of what is there: at most so many bytes, in at most so many seconds."""
        budget = _RequestBudget(seconds, most + _HEADER_BYTES)
        with self._asked("GET", url, headers, b"", budget) as response:
            found = _answer(response)
            if found.status != 200:
                raise UrlFailed(f"expected the status 200, found {found.status}")
            if found.headers.get("content-encoding", "identity") != "identity":
                raise UrlFailed("expected the bytes as they are, found a Content-Encoding")
            yield _bounded(response, most)

    @contextmanager
    def _asked(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        budget: "_RequestBudget",
    ) -> Iterator[httpcore.Response]:
        place = self.check(url)
        pinned = _PinnedBackend(
            addresses.find_addresses(place, self.resolve, budget.seconds), budget
        )
        connection = httpcore.HTTPConnection(
            httpcore.Origin(b"https", place.host.encode(), place.port),
            ssl_context=self._context,
            network_backend=pinned,
        )
        own = {"Host": place.authority, "User-Agent": AGENT, "Accept-Encoding": "identity"}
        sent = [(name, text) for name, text in {**own, **headers, "Connection": "close"}.items()]
        if body:
            sent.append(("Content-Length", str(len(body))))
        target = httpcore.URL(
            scheme=b"https", host=place.host.encode(), port=place.port, target=place.target.encode()
        )
        request = httpcore.Request(method, target, headers=sent, content=body)
        with connection, _http_errors_translated():
            response = connection.handle_request(request)
            try:
                yield response
            finally:
                response.close()

    @cached_property
    def _context(self) -> ssl.SSLContext:
        return self.context or ssl.create_default_context()


def _answer(response: httpcore.Response) -> OutgoingAnswer:
    named = ((name.decode("latin-1"), text.decode("latin-1")) for name, text in response.headers)
    return OutgoingAnswer(response.status, {name.lower(): text for name, text in named})


def _bounded(response: httpcore.Response, most: int) -> Iterator[bytes]:
    size = 0
    for chunk in response.iter_stream():
        size += len(chunk)
        if size > most:
            raise UrlFailed(f"expected at most {most} bytes, found more")
        yield chunk


@contextmanager
def _http_errors_translated() -> Iterator[None]:
    try:
        yield
    except (httpcore.ProtocolError, httpcore.NetworkError):
        raise UrlFailed("the host does not answer as HTTP is spoken") from None


class _RequestBudget:
    """Seconds of one request in all, and bytes that come back, headers and TLS's own included."""

    def __init__(self, seconds: float, most: int) -> None:
        self._until = time.monotonic() + seconds
        self._left = most

    @property
    def seconds(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise UrlFailed("no whole answer came in time")
        return left

    def take(self, received: int) -> None:
        self._left -= received
        if self._left < 0:
            raise UrlFailed("the answer is too large")


class _PinnedBackend(httpcore.NetworkBackend):
    """Connects to the first of these addresses that answers; the host's name is for TLS alone."""

    def __init__(self, addresses: Sequence[str], budget: _RequestBudget) -> None:
        self._addresses = addresses
        self._budget = budget

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002  was resolved already
        port: int,
        timeout: float | None = None,  # noqa: ARG002  the budget's
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        for address in self._addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            made = socket.socket(family, socket.SOCK_STREAM)
            try:
                made.settimeout(self._budget.seconds)
                made.connect((address, port))
            except OSError:
                made.close()
            except BaseException:
                made.close()
                raise
            else:
                return _BudgetedStream(made, self._budget)
        raise UrlFailed("the host does not accept connections")


class _BudgetedStream(httpcore.NetworkStream):
    """Python's TLS holds one deadline for a whole handshake; so do connect and sendall."""

    def __init__(self, connected: socket.socket, budget: _RequestBudget) -> None:
        self._socket = connected
        self._budget = budget

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        with _socket_errors_translated():
            self._socket.settimeout(self._budget.seconds)
            found = self._socket.recv(max_bytes)
        self._budget.take(len(found))
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        with _socket_errors_translated():
            self._socket.settimeout(self._budget.seconds)
            self._socket.sendall(buffer)

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        with _socket_errors_translated():
            try:
                self._socket.settimeout(self._budget.seconds)
                wrapped = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
            except BaseException:
                self._socket.close()
                raise
        return _BudgetedStream(wrapped, self._budget)

    def get_extra_info(self, info: str) -> Any:  # noqa: ARG002  HTTP/1.1 needs none
        return None


@contextmanager
def _socket_errors_translated() -> Iterator[None]:
    """Errors of sockets in words; nothing that the other side has written stands in them."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise UrlFailed(f"the host's certificate is not valid: {error.verify_message}") from None
    except TimeoutError:
        raise UrlFailed("no whole answer came in time") from None
    except ssl.SSLError:
        raise UrlFailed("the host does not speak TLS as it is spoken now") from None
    except OSError:
        raise UrlFailed("the host has cut the connection") from None
