"""Connections to PostgreSQL that end where the server falls silent.

TCP notices a lost machine after some seconds, and never a server or a proxy that is there and says
nothing. Whoever waits longer than usual asks the server over a connection of its own: a long
statement goes on as long as the server answers that.
"""

import socket
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from threading import Thread
from typing import Any

import psycopg
import structlog

log = structlog.get_logger()

_PAUSE_SECONDS = 0.3  # between two questions to a server that was silent


class MonitoredServer:
    """A server of which many threads want something. Who has waited for `patience` seconds asks
    whether it `answers`, which is found out once for all of them. One that is silent is asked on in
    the background, and whoever wants something of it meanwhile need not wait.
    """

    def __init__(self, name: str, patience: float, ask: Callable[[], None]) -> None:
        """`ask` raises OSError unless the server answers, within a second."""
        self.patience = patience
        self.is_silent = False
        self._name = name
        self._ask = ask
        self._lock = threading.Lock()
        self._asking: Future[bool] | None = None

    def answers(self) -> bool:
        with self._lock:
            if self.is_silent:
                return False
            asking = self._asking
            if asking is None:
                asking = self._asking = Future()
                threading.Thread(target=self._find_out, args=(asking,), daemon=True).start()
        return asking.result()

    def _find_out(self, asking: "Future[bool]") -> None:
        found = self._is_there()
        with self._lock:
            self.is_silent, self._asking = not found, None
        asking.set_result(found)
        if found:
            return
        log.error("a server is silent", server=self._name)
        while not self._is_there():
            time.sleep(_PAUSE_SECONDS)
        self.is_silent = False
        log.info("a server answers again", server=self._name)

    def _is_there(self) -> bool:
        try:
            self._ask()
        except OSError:
            return False
        return True


_ASK_SECONDS = 0.8
# "Is there TLS?", which a server answers with one byte to everybody.
_QUESTION = bytes.fromhex("0000000804d2162f")
_SILENT = "the server does not answer"


class _MonitoredConnection(psycopg.Connection[Any]):
    server: MonitoredServer | None = None

    def wait(self, gen: Any, *arguments: Any, **named: Any) -> Any:
        watched = gen if self.server is None else self._watched(gen, self.server)
        return super().wait(watched, *arguments, **named)

    def _watched(self, waiting: Any, server: MonitoredServer) -> Generator[Any, Any, Any]:
        """Wait as the driver does, which looks every tenth of a second."""
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


class PostgresqlConnector:
    """Makes connections to one server."""

    def __init__(self, patience: float) -> None:
        self._address: tuple[int, Any] | None = None  # a socket's family and address
        self._server = MonitoredServer("postgresql", patience, self._ask)

    def __call__(self, *arguments: Any, **named: Any) -> psycopg.Connection[Any]:
        """A connection; psycopg.OperationalError as soon as the server is known to be silent."""
        if self._server.is_silent:
            raise psycopg.OperationalError(_SILENT)
        made: Future[_MonitoredConnection] = Future()
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
    """The server's address, without a name that somebody would have to be asked for."""
    server = connection.pgconn
    host, port = server.host.decode(), int(server.port)
    if host.startswith("/"):
        return socket.AF_UNIX, f"{host}/.s.PGSQL.{port}"
    address = server.hostaddr.decode() or host
    return (socket.AF_INET6 if ":" in address else socket.AF_INET), (address, port)


def _make(made: "Future[_MonitoredConnection]", arguments: Any, named: Any) -> None:
    try:
        made.set_result(_MonitoredConnection.connect(*arguments, **named))
    except BaseException as error:  # noqa: BLE001  who waits for the connection raises it
        made.set_exception(error)


def _close(made: "Future[_MonitoredConnection]") -> None:
    with suppress(Exception):
        made.result().close()
