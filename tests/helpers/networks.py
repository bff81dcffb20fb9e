"""Networks that fail between a client and a server: cut at certain requests, or silent."""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Self


class Forwarder:
    """Forwards TCP from its own port to a server's; `_lead` says how."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

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
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                near, _ = self._listener.accept()
                self._lead(near)

    def _lead(self, near: socket.socket) -> None:
        raise NotImplementedError

    def _end(self, *ends: socket.socket) -> None:
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Link(Forwarder):
    """What is sent while it is silent arrives when it is whole again, as packets do that are sent
    again; nothing is refused.
    """

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self._whole = threading.Event()
        self._whole.set()
        self._over = False

    def __exit__(self, *arguments: object) -> None:
        self._over = True
        self._whole.set()
        super().__exit__(*arguments)

    def silence(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    def _lead(self, near: socket.socket) -> None:
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
        self._end(one, other)


@dataclass(frozen=True)
class Cut:
    """Cut at the first request that contains `at`; the next `refused` connections are refused."""

    at: bytes
    answered: bool = False  # the service gets the request, and its answer is lost
    refused: int = 2


class Network(Forwarder):
    """A network to a service on this machine; `cuts` are the cuts still to come."""

    def __init__(self, port: int, *cuts: Cut) -> None:
        super().__init__("127.0.0.1", port)
        self.cuts = list(cuts)
        self._down = 0
        self._lost: dict[socket.socket, Cut] = {}

    def _lead(self, near: socket.socket) -> None:
        if self._down:
            self._down -= 1
            near.close()
            return
        far = socket.create_connection(self._to)
        self._ends += [near, far]
        self._start(self._ask, near, far)
        self._start(self._answer, far, near)

    def _ask(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            while data := near.recv(65536):
                if cut := next((each for each in self.cuts if each.at in data), None):
                    self.cuts.remove(cut)
                    if not cut.answered:
                        self._fall(cut)
                        return
                    self._lost[far] = cut
                self._pass(far, data)
        self._end(near, far)

    def _pass(self, far: socket.socket, data: bytes) -> None:
        far.sendall(data)

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
