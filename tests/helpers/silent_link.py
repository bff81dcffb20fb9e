"""A link to a server that can fall silent: nothing is refused, and nothing is answered."""

import socket
import threading
from contextlib import suppress
from typing import Self


class Link:
    """Forwards TCP from its own port to a server's. What is sent while it is silent arrives when it
    is whole again, as packets do that are sent again.
    """

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._whole = threading.Event()
        self._whole.set()
        self._over = False
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._whole.set()
        for end in (self._listener, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def silence(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    def _start(self, target, *arguments: socket.socket) -> None:
        threading.Thread(target=target, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._ends.append(near)
                self._start(self._join, near)

    def _join(self, near: socket.socket) -> None:
        self._whole.wait()
        with suppress(OSError), socket.create_connection(self._to) as far:
            if not self._over:
                self._start(self._forward, far, near)
                self._forward(near, far)

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                self._whole.wait()
                other.sendall(data)
        self._whole.wait()
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
