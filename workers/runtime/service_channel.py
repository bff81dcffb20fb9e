"""Channel of a warm child to its parent, which starts for it the processes that it may not start
(`child_services`).
"""

import socket
from collections.abc import Sequence
from threading import Lock
from typing import Any

from service.contract.errors import (
    ConverterUnavailable,
    JavaFailed,
    MetricFailed,
    MetricUnavailable,
    PrescoreError,
)
from workers.metrics.java.jvm import Jvm, Tell
from workers.sandbox import converter_protocol
from workers.sandbox.converter_protocol import MessageError

_REASON = 1000  # bytes
_LOOK_SECONDS = 0.05
_ERRORS: dict[str, type[PrescoreError]] = {
    each.code: each for each in (JavaFailed, MetricFailed, MetricUnavailable)
}


class ServiceChannel:
    """Gives connections to a converter and to Java."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._lock = Lock()

    def __str__(self) -> str:
        return "the worker"

    def connect(self, service: bytes = b"c") -> socket.socket:
        """Connect to the converter, or to what this letter names. Raises ConverterUnavailable."""
        with self._lock:
            self._socket.sendall(service)
            told, files, _, _ = socket.recv_fds(self._socket, 1, 1, socket.MSG_CMSG_CLOEXEC)
            if told == b"+" and files:
                return socket.socket(fileno=files[0])
            reason = self._socket.recv(_REASON, socket.MSG_WAITALL).decode(errors="replace").strip()
        raise ConverterUnavailable(reason or "the worker has ended")

    def close(self) -> None:
        self._socket.close()

    def open_jvm(self, kind: str) -> Jvm:
        """Java of a kind, which the parent runs."""
        return ParentJvm(self, kind)


class ParentJvm(Jvm):
    """Java that the parent runs."""

    def __init__(self, channel: ServiceChannel, kind: str = "coco") -> None:
        super().__init__(kind)
        self._channel = channel
        self._connection: socket.socket | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(
        self, operation: str, items: Sequence[Any], start: int, deadline: float, tell: Tell
    ) -> list[Any]:
        request = {
            "kind": self.kind,
            "operation": operation,
            "items": list(items),
            "first": start,
            "deadline": deadline,
        }
        try:
            if self._connection is None:
                self._connection = self._channel.connect(b"j")
            converter_protocol.send_message(self._connection, request)
            while not converter_protocol.has_come(self._connection, _LOOK_SECONDS):
                tell()
            found, _ = converter_protocol.receive_message(self._connection)
        except (OSError, MessageError) as error:
            self.close()
            raise JavaFailed(f"{operation}: the worker gave no answer of Java ({error})") from None
        except BaseException:  # nobody waits for the answer any more
            self.close()
            raise
        if "error" in found:
            code, detail = found["error"]
            raise _ERRORS.get(code, JavaFailed)(detail)
        answers: list[Any] = found["answers"]
        return answers
