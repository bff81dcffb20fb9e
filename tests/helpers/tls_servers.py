"""Servers with TLS on loopback, each with an address of its own and a usual port."""

import itertools
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

PORT = 8443
_NUMBERS = itertools.count(1)


def own_address() -> str:
    """One of 127.0.0.0/8 that no other process of tests uses."""
    process, number = os.getpid() & 0x3FFF, next(_NUMBERS) & 0x1FF
    whole = (64 << 16 | process << 9 | number) & 0xFFFFFF
    return f"127.{whole >> 16}.{whole >> 8 & 255}.{whole & 255}"


class Server:
    """Calls `talk` with each connection, in a thread; counts connections before TLS begins."""

    def __init__(self, talk: Callable[[socket.socket], None], context: ssl.SSLContext | None):
        self.address = own_address()
        self.connections = 0
        self._talk = talk
        self._context = context
        self._listener = socket.create_server((self.address, PORT))
        self._thread = threading.Thread(target=self._accept)
        self._talks: list[threading.Thread] = []
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for talk in self._talks:
            talk.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.connections += 1
                talk = threading.Thread(target=self._serve, args=(near,))
                self._talks.append(talk)
                talk.start()

    def _serve(self, near: socket.socket) -> None:
        near.settimeout(10)
        with suppress(OSError):
            if self._context is not None:
                near = self._context.wrap_socket(near, server_side=True)
            self._talk(near)
        near.close()


@contextmanager
def serving(
    talk: Callable[[socket.socket], None], context: ssl.SSLContext | None
) -> Iterator[Server]:
    server = Server(talk, context)
    try:
        yield server
    finally:
        server.close()


def read_request(near: socket.socket) -> tuple[bytes, bytes]:
    """Head and body of a request with a Content-Length."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _some(near)
    head, _, body = received.partition(b"\r\n\r\n")
    announced = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    length = int(announced[0].split(b":")[1]) if announced else 0
    while len(body) < length:
        body += _some(near)
    return head, body


def _some(near: socket.socket) -> bytes:
    found = near.recv(65536)
    if not found:
        raise ConnectionResetError
    return found
