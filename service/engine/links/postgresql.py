"""Connections to PostgreSQL that end where the server falls silent.

TCP notices a lost machine after some seconds, and a server or proxy that is there and says nothing
never. Who waits for longer than usual asks the server over a connection of its own: a long
statement goes on as long as the server answers that.
"""

import socket
import time
from collections.abc import Generator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from threading import Thread
from typing import Any

import psycopg

from service.engine.links.silence import Server

_ASK_SECONDS = 0.8
# "Is there TLS?", which a server answers with one byte to everybody.
_QUESTION = bytes.fromhex("0000000804d2162f")
_SILENT = "the server does not answer"


class _Watched(psycopg.Connection[Any]):
    server: Server | None = None

    def wait(self, gen: Any, *arguments: Any, **named: Any) -> Any:
        watched = gen if self.server is None else self._watched(gen, self.server)
        return super().wait(watched, *arguments, **named)

    def _watched(self, waiting: Any, server: Server) -> Generator[Any, Any, Any]:
        """What the driver waits for; it looks every tenth of a second, and so does this."""
        since = time.monotonic()
        try:
            wanted = next(waiting)
            while True:
                ready = yield wanted
                if ready or time.monotonic() - since > server.patience:
                    since = time.monotonic()
                    if not ready and not server.answers():
                        self.pgconn.finish()
                        raise psycopg.OperationalError(_SILENT)
                wanted = waiting.send(ready)
        except StopIteration as end:
            return end.value


class Connector:
    """Makes connections to one server."""

    def __init__(self, patience: float) -> None:
        self._address: tuple[int, Any] | None = None  # a socket's family and address
        self._server = Server("postgresql", patience, self._ask)

    def __call__(self, *arguments: Any, **named: Any) -> psycopg.Connection[Any]:
        """A connection; psycopg.OperationalError as soon as the server is known to be silent."""
        if self._server.is_silent:
            raise psycopg.OperationalError(_SILENT)
        made: Future[_Watched] = Future()
        Thread(target=_make, args=(made, arguments, named), daemon=True).start()
        while True:
            try:
                connection = made.result(self._server.patience)
            except TooLate:
                if self._address is None or self._server.answers():
                    continue
                made.add_done_callback(_close)
                raise psycopg.OperationalError(_SILENT) from None
            self._address = _address_of(connection)
            connection.server = self._server
            return connection

    def _ask(self) -> None:
        family, address = self._address or (socket.AF_UNIX, "")
        with socket.socket(family) as asking:
            asking.settimeout(_ASK_SECONDS)
            asking.connect(address)
            asking.sendall(_QUESTION)
            if not asking.recv(1):
                raise ConnectionError(_SILENT)


def _address_of(connection: psycopg.Connection[Any]) -> tuple[int, Any]:
    """Where it leads to, without a name that somebody would have to be asked for."""
    server = connection.pgconn
    host, port = server.host.decode(), int(server.port)
    if host.startswith("/"):
        return socket.AF_UNIX, f"{host}/.s.PGSQL.{port}"
    address = server.hostaddr.decode() or host
    return (socket.AF_INET6 if ":" in address else socket.AF_INET), (address, port)


def _make(made: "Future[_Watched]", arguments: Any, named: Any) -> None:
    try:
        made.set_result(_Watched.connect(*arguments, **named))
    except BaseException as error:  # noqa: BLE001  who waits for the connection raises it
        made.set_exception(error)


def _close(made: "Future[_Watched]") -> None:
    with suppress(Exception):
        made.result().close()
