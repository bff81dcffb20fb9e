"""Protocol of a converter: operations by name; messages of a length, JSON and open files."""

import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from select import POLLIN, POLLRDHUP, poll
from typing import Any, Literal

_LENGTH = struct.Struct(">I")
_CHUNK = 1 << 16
MOST_FILES = 200  # of a message; the kernel takes 253
MOST_BYTES = 1 << 24


class MessageError(Exception):
    """Error of bytes that are no message, of one that came too late, or of a side that has left."""


def send_message(
    connection: socket.socket, message: Mapping[str, Any], files: Sequence[int] = ()
) -> None:
    """Send a message and files. Raises OSError where the other side has left."""
    body = json.dumps(message).encode()
    connection.settimeout(None)
    socket.send_fds(connection, [_LENGTH.pack(len(body))], files)
    connection.sendall(body)


def receive_message(
    connection: socket.socket,
    seconds: float | None = None,
    *,
    most_files: int = 0,
) -> tuple[Mapping[str, Any], list[int]]:
    """A message, and the files that came with it, which the caller closes. `seconds` are those of
    the whole of it. Raises MessageError; then no file is left open.
    """
    files: list[int] = []
    until = None if seconds is None else time.monotonic() + seconds
    try:
        found = _message(lambda size: _exactly(connection, size, files, most_files, until))
    except (OSError, ValueError, RecursionError) as error:
        close_files(files)
        raise MessageError(f"{type(error).__name__}: {error}") from None
    except BaseException:
        close_files(files)
        raise
    return found, files


def _message(take: Callable[[int], bytes]) -> Mapping[str, Any]:
    (size,) = _LENGTH.unpack(take(_LENGTH.size))
    if size > MOST_BYTES:
        raise MessageError(f"announced {size:,} bytes, at most {MOST_BYTES:,} are read")
    found = json.loads(take(size))
    if not isinstance(found, dict):
        raise MessageError(f"expected an object, found a {type(found).__name__}")
    return found


def close_files(files: Iterable[int]) -> None:
    for each in files:
        with contextlib.suppress(OSError):
            os.close(each)


def is_quiet(connection: socket.socket) -> bool:
    """Tell if the other side is there, and says nothing."""
    return not has_come(connection, 0.0)


def has_come(connection: socket.socket, seconds: float) -> bool:
    """Tell if the other side says something, or leaves, within this time."""
    poller = poll()
    poller.register(connection, POLLIN | POLLRDHUP)
    return bool(poller.poll(seconds * 1000))


def _exactly(
    connection: socket.socket, size: int, files: list[int], most: int, until: float | None
) -> bytes:
    found = bytearray()
    while len(found) < size:
        if until is not None:
            connection.settimeout(max(until - time.monotonic(), 0.001))
        else:
            connection.settimeout(None)
        wanted = min(size - len(found), _CHUNK)
        flags = socket.MSG_CMSG_CLOEXEC
        data, given, told, _ = socket.recv_fds(connection, wanted, most + 1, flags)
        files += given
        if told & socket.MSG_CTRUNC or len(files) > most:
            raise MessageError(f"expected at most {most} open files")
        if not data:
            raise MessageError("the other side has left")
        found += data
    return bytes(found)


OperationKind = Literal["once", "stays"]  # an Operation, or an Opener (`workers.sandbox.child`)

OPERATIONS: Mapping[str, OperationKind] = {
    "workers.conversion.verification:verify_huggingface": "once",
    "workers.conversion.verification:verify_adapter": "once",
    "workers.conversion.pytorch:convert_state_dict": "once",
    "workers.inference.huggingface.folder_processor:serve_processor": "stays",
    "workers.inference.onnx.child:serve_graphs": "stays",
    "workers.inference.tokenizer_child:serve_tokenizer": "stays",
    "workers.inference.pictures.decoder:decode_pictures": "once",
    "workers.inference.pictures.decoder:shrink_pictures": "once",
    "workers.sandbox.probe:try_escapes": "once",
}
