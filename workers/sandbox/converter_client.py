"""Client of a converter: a worker's operations go there with their files, open."""

import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from prescore import plain_text
from service.contract.errors import ConverterUnavailable
from workers.sandbox import converter_protocol
from workers.sandbox.child import InputRefused
from workers.sandbox.children import ChildStopped, ConfinementUnavailable, OperationCall
from workers.sandbox.converter_protocol import MessageError

PATIENCE_SECONDS = 20.0  # for a converter that is started again
_AGAIN_SECONDS = 0.2
_SILENCE_SECONDS = 30.0  # without a word that the call still waits for its turn
_GRACE_SECONDS = 15.0  # after which the converter itself would have ended the child


class ConverterAddress(Protocol):
    """Address of a converter, as text in messages too."""

    def connect(self) -> socket.socket:
        """Connect to it. Raises ConverterUnavailable."""
        ...


@dataclass(frozen=True)
class ConverterSocket:
    """The socket at which a converter listens."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def connect(self, patience: float | None = None) -> socket.socket:
        until = time.monotonic() + (PATIENCE_SECONDS if patience is None else patience)
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(str(self.path))
            except OSError as error:
                connection.close()
                if time.monotonic() >= until:
                    raise ConverterUnavailable(
                        f"no converter answers at {self}: {error.strerror or error}; "
                        "`prescore worker converter` starts one (PRESCORE_CONVERTER)"
                    ) from None
                time.sleep(_AGAIN_SECONDS)
            else:
                return connection


class ConverterChild:
    """A child of the converter at this address."""

    def __init__(self, address: ConverterAddress, call: OperationCall) -> None:
        self._address = address
        self._seconds = call.limits.seconds + _GRACE_SECONDS
        with _opened(call) as files:
            self._connection = address.connect()
            try:
                converter_protocol.send_message(self._connection, _asked(call), files)
                self.pid = self._begun()
            except (OSError, MessageError) as error:
                self.end()
                raise self._lost(error) from None
            except BaseException:
                self.end()
                raise

    def begin(self) -> Mapping[str, Any]:
        try:
            found, _ = converter_protocol.receive_message(self._connection, self._seconds)
        except MessageError as error:
            self.end()
            raise self._lost(error) from None
        return _judged(found)

    def ask(self, request: Mapping[str, Any], seconds: float | None = None) -> Mapping[str, Any]:
        asked = {"request": request, "seconds": seconds}
        try:
            converter_protocol.send_message(self._connection, asked)
        except OSError as error:
            self.end()
            raise self._lost(error) from None
        return self.begin()

    def is_alive(self) -> bool:
        """Tell if the converter is there; a child that has ended is noticed when it is asked."""
        return self._connection.fileno() >= 0 and converter_protocol.is_quiet(self._connection)

    def end(self) -> None:
        """The converter kills the child, with all that it has started."""
        self._connection.close()

    def _begun(self) -> int:
        """Wait for a place; the child's id there."""
        while True:
            found, _ = converter_protocol.receive_message(self._connection, _SILENCE_SECONDS)
            match found:
                case {"began": int(pid)}:
                    return pid
                case {"waits": _}:
                    continue
            _judged(found)
            raise MessageError("answered before it began")

    def _lost(self, error: Exception) -> ConverterUnavailable:
        return ConverterUnavailable(
            f"the converter at {self._address} gave no answer ({plain_text.quoted(str(error))}): "
            "what it was asked is tried again"
        )


def check_converter(path: Path, seconds: float = 3.0) -> None:
    """Raise ConverterUnavailable unless a converter answers at this socket."""
    with ConverterSocket(path).connect(patience=0.0) as connection:
        try:
            converter_protocol.send_message(connection, {"ping": True})
            found, _ = converter_protocol.receive_message(connection, seconds)
        except (OSError, MessageError) as error:
            raise ConverterUnavailable(f"the converter at {path}: {error}") from None
        if "pong" not in found:
            raise ConverterUnavailable(f"what listens at {path} is no converter")


def main(path: str) -> None:
    """Run a container's health check."""
    try:
        check_converter(Path(path))
    except ConverterUnavailable as error:
        sys.exit(error.detail)


@contextmanager
def _opened(call: OperationCall) -> Iterator[list[int]]:
    """The call's files, in the order in which a converter expects them."""
    with ExitStack() as opened:
        files = []
        for paths, how in ((call.inputs, os.O_RDONLY), (call.outputs, os.O_RDWR)):
            for path in paths:
                files.append(os.open(path, how | os.O_CLOEXEC))
                opened.callback(os.close, files[-1])
        if call.shared is not None:
            files.append(call.shared[0])
        yield files


def _asked(call: OperationCall) -> dict[str, Any]:
    return {
        "operation": call.operation,
        "inputs": len(call.inputs),
        "outputs": len(call.outputs),
        "parameters": dict(call.parameters),
        "limits": vars(call.limits),
        "threads": call.threads,
        "shared": None if call.shared is None else call.shared[1],
    }


def _judged(found: Mapping[str, Any]) -> Mapping[str, Any]:
    match found:
        case {"answer": dict(answer)}:
            return answer
        case {"problem": str(text)}:
            raise InputRefused(text)
        case {"stopped": str(text)}:
            raise ChildStopped(text)
        case {"unavailable": str(text)}:
            raise ConfinementUnavailable(text)
        case {"lost": str(text)}:
            raise ConverterUnavailable(f"the converter's child {text}: it is tried again")
        case {"refused": str(text)}:
            raise ConverterUnavailable(f"the converter does not perform this: {text}")
    raise ConverterUnavailable("the converter answered something else than was asked")
