"""A proxy between a client and a service that cuts connections at certain requests."""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Cut:
    """Cut at the first request that contains `at`; the next `refused` connections are refused."""

    at: bytes
    answered: bool = False  # the service gets the request, and its answer is lost
    refused: int = 2


class Network:
    """Forwards TCP from its own port to the service's; `cuts` are the cuts still to come."""

    def __init__(self, port: int, *cuts: Cut) -> None:
        self.cuts = list(cuts)
        self._to = ("127.0.0.1", port)
        self._down = 0
        self._lost: dict[socket.socket, Cut] = {}
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.append(self._listener)
        self._end(*self._ends)
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()

    def _start(self, target, *arguments: socket.socket) -> None:
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._down:
                    self._down -= 1
                    near.close()
                    continue
                far = socket.create_connection(self._to)
                self._ends += [near, far]
                self._start(self._ask, near, far)
                self._start(self._answer, far, near)

    def _ask(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            while data := near.recv(65536):
                if self.cuts and self.cuts[0].at in data:
                    cut = self.cuts.pop(0)
                    if not cut.answered:
                        self._fall(cut)
                        return
                    self._lost[far] = cut
                far.sendall(data)
        self._end(near, far)

    def _answer(self, far: socket.socket, near: socket.socket) -> None:
        with suppress(OSError):
            while data := far.recv(65536):
                if cut := self._lost.pop(far, None):
                    self._fall(cut)
                    return
                near.sendall(data)
        self._end(near, far)

    def _fall(self, cut: Cut) -> None:
        self._down = cut.refused
        self._end(*self._ends)

    def _end(self, *ends: socket.socket) -> None:
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
