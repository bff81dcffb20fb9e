"""Connections to addresses that were judged, with one deadline and one bound on all that comes."""

import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpcore

from service.contract.errors import UrlFailed


class RequestBudget:
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


class PinnedBackend(httpcore.NetworkBackend):
    """Connects to the first of these addresses that answers; the host's name is for TLS alone."""

    def __init__(self, addresses: Sequence[str], budget: RequestBudget) -> None:
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

    def __init__(self, connected: socket.socket, budget: RequestBudget) -> None:
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
