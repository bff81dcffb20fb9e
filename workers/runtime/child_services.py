"""Services of a worker for its warm child, which may start no process: children in the sandbox,
Java, and the tuples that SPICE has found before.

The child asks for a connection by the socket that it inherits (`service_channel`), and gets one
that is open already. All that it says there is judged: it may be anything.
"""

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore, Thread
from typing import Any

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.contract.assets import AssetFolders
from service.contract.errors import ConverterUnavailable, PrescoreError
from service.contract.settings import Settings
from service.kernel import confinement
from workers.metrics import spice_tuples
from workers.metrics.java.jvm import Jvm
from workers.sandbox import converter_protocol
from workers.sandbox.converter_client import ConverterSocket
from workers.sandbox.converter_protocol import MessageError
from workers.sandbox.converter_server import Converter, ConverterBounds

_CONNECTIONS = 8  # to Java at once: the child has one for each kind
_HOUR = 3600.0


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of the services: where assets are, the converter that is asked in place of this
    process, and the mechanisms and bytes of memory of the children that this process starts.
    """

    places: AssetFolders
    memory: int
    converter: Path | None = None
    without: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: Settings) -> "ServiceSettings":
        return cls(
            AssetFolders.of(settings),
            settings.task_memory,
            settings.converter,
            confinement.list_skipped_mechanisms(settings.sandbox),
        )


class _JavaRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    kind: str
    operation: str
    items: list[Any]
    first: int
    deadline: float | None = Field(gt=0, le=_HOUR)


class _ChildLeft(Exception):
    """The child has left, or sends where it has to wait."""


class ChildServices:
    """`descriptor`: the socket that the child inherits."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        bounds = ConverterBounds(len(os.sched_getaffinity(0)), settings.memory)
        self._converter = Converter(bounds, without=settings.without)
        self._jvm = Jvm()
        self._parser: spice_tuples.TupleParser | None = None
        self._places = BoundedSemaphore(_CONNECTIONS)
        self._connections: set[socket.socket] = set()  # by which Java is asked
        self._channel, self._childs = socket.socketpair()
        self.descriptor = self._childs.fileno()
        Thread(target=self._serve, daemon=True).start()

    def begin(self) -> None:
        """Forget the child's end of the socket, when the child has it."""
        self._childs.close()

    def close(self) -> None:
        """End all that was started for the child."""
        for each in (self._channel, *tuple(self._connections)):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._childs.close()
        self._converter.close()
        self._jvm.close()
        if self._parser is not None:
            self._parser.close()

    def list_processes(self) -> list[psutil.Process]:
        """The processes that were started for the child, with those that they have started."""
        java = (self._jvm.pid, None if self._parser is None else self._parser.pid)
        found = []
        for pid in (*self._converter.pids, *java):
            with suppress(psutil.Error):
                if pid is not None:
                    process = psutil.Process(pid)
                    found += [process, *process.children(recursive=True)]
        return found

    def _serve(self) -> None:
        connect: Mapping[bytes, Callable[[], socket.socket]] = {
            b"c": self._connect_converter,
            b"j": self._connect_java,
        }
        with self._channel:
            while asked := self._channel.recv(1):
                try:
                    with connect[asked]() as connection:
                        socket.send_fds(self._channel, [b"+"], [connection.fileno()])
                except ConverterUnavailable as error:
                    self._channel.sendall(b"-" + error.detail.encode()[:1000].ljust(1000))
                except (KeyError, OSError):
                    return

    def _connect_converter(self) -> socket.socket:
        if self._settings.converter is not None:
            return ConverterSocket(self._settings.converter).connect()
        childs, ours = socket.socketpair()
        self._converter.begin(lambda: ours)
        return childs

    def _connect_java(self) -> socket.socket:
        self._places.acquire()
        childs, ours = socket.socketpair()
        self._connections.add(ours)
        Thread(target=self._answer_all, args=(ours,), daemon=True).start()
        return childs

    def _answer_all(self, connection: socket.socket) -> None:
        try:
            with connection:
                while True:
                    asked, _ = converter_protocol.receive_message(connection)
                    converter_protocol.send_message(connection, self._answer(asked, connection))
        except (_ChildLeft, MessageError, OSError):
            pass
        finally:
            self._connections.discard(connection)
            self._places.release()

    def _answer(self, asked: Mapping[str, Any], connection: socket.socket) -> Mapping[str, Any]:
        def look(_done: int, _total: int) -> None:
            if not converter_protocol.is_quiet(connection):
                raise _ChildLeft

        try:
            request = _JavaRequest.model_validate(asked)
            if request.kind == self._jvm.kind:
                return {"answers": self._call(request, look)}
            if request.kind != spice_tuples.JAVA:
                return {"error": ["internal", f"no Java of the kind {request.kind!r:.100}"]}
            if self._parser is None:
                self._parser = spice_tuples.open_parser(self._settings.places)
            found = self._parser.parse(list(map(str, request.items)), progress=look)
            return {"answers": [found[str(item)] for item in request.items]}
        except ValidationError as error:
            return {
                "error": ["internal", f"a request to Java that is none: {error.errors()[0]['msg']}"]
            }
        except PrescoreError as error:
            return {"error": [error.code, error.detail]}

    def _call(self, request: _JavaRequest, look: Callable[[int, int], None]) -> list[Any]:
        return self._jvm.call(
            request.operation,
            request.items,
            batch=max(1, len(request.items)),
            first=request.first,
            deadline=request.deadline,
            progress=look,
        )
