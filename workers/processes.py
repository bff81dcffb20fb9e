"""Processes of ours beside this one. They die with their parent. Messages are JSON behind a length
of four bytes: no separators to escape, nothing that runs code, no pickle.

The parent has a `Child`. The child calls `die_with` and `private_pipes`, then `read` and `write`.
"""

import contextlib
import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from select import POLLIN, POLLOUT, poll
from threading import Thread
from typing import Any, BinaryIO

_LENGTH = struct.Struct(">I")
_LARGEST_MESSAGE = 1 << 28
_CHUNK = 1 << 16
_PR_SET_PDEATHSIG = 1
_STOP_SECONDS = 5.0


class Gone(Exception):
    """The child has died, or what it said is no message: no more is to be expected of it."""


def die_with(parent: int) -> None:
    """Ends this process with its parent, also while it is busy: an end of file on a pipe would be
    seen too late.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent is gone already")


def private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Requests and answers. What libraries print goes to stderr: it is not taken for an answer."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return requests, answers


def read(stream: BinaryIO) -> Any:
    """The next message; None where the parent has closed its end."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return json.loads(stream.read(_LENGTH.unpack(head)[0]))


def write(stream: BinaryIO, message: Mapping[str, Any]) -> None:
    stream.write(_framed(message))
    stream.flush()


def _framed(message: Mapping[str, Any]) -> bytes:
    body = json.dumps(message).encode()
    return _LENGTH.pack(len(body)) + body


class Child:
    """One process group, its pipes, and a thread that listens to its stderr."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], output_bytes: int
    ) -> None:
        """`output_bytes`: how much of the end of its stderr is kept."""
        self._output = b""
        self._output_bytes = output_bytes
        started: Future[subprocess.Popen[bytes]] = Future()
        # The kernel kills the child when the *thread* that started it ends: so it is the one that
        # lives as long as the child does, not some caller's.
        self._listener = Thread(
            target=self._live, args=(command, environment, started), daemon=True
        )
        self._listener.start()
        self._process = started.result()
        self.pid = self._process.pid
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)
        self._unsent = memoryview(b"")
        self._received = bytearray()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send(self, message: Mapping[str, Any]) -> None:
        """`receive` sends what does not fit into the pipe: it reads and writes at once, so that two
        full pipes cannot wait for each other.
        """
        self._unsent = memoryview(bytes(self._unsent) + _framed(message))
        self._send()

    @property
    def unsent(self) -> int:
        """Bytes that the child has not taken."""
        return len(self._unsent)

    @property
    def unread(self) -> int:
        """Bytes that the child has said after the last message."""
        return len(self._received)

    def receive(self, seconds: float) -> bytes | None:
        """The next message's JSON; None where the child says nothing for so long."""
        until = time.monotonic() + seconds
        while True:
            message = self._message()
            if message is not None:
                return message
            left = until - time.monotonic()
            if left <= 0:
                return None
            ready = self._wait(left)
            if ready & POLLOUT:
                self._send()
            if ready & POLLIN:
                self._receive()

    def end(self) -> str:
        """Kills the whole group at once; how the child ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._listener.join(timeout=5)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        return self._how()

    def close(self) -> None:
        """Lets an idle child go by itself; kills it where it does not."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        self.end()

    @property
    def last_output(self) -> str:
        return self._output.decode(errors="replace").strip()

    def _live(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        started: "Future[subprocess.Popen[bytes]]",
    ) -> None:
        try:
            process = subprocess.Popen(  # noqa: S603  our own program
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except BaseException as error:  # noqa: BLE001  the thread that waits raises it
            started.set_exception(error)
            return
        started.set_result(process)
        assert process.stderr is not None
        with process.stderr as stream:
            while said := os.read(stream.fileno(), _CHUNK):
                self._output = (self._output + said)[-self._output_bytes :]

    def _message(self) -> bytes | None:
        received = self._received
        if len(received) < _LENGTH.size:
            return None
        size: int = _LENGTH.unpack_from(received)[0]
        if size > _LARGEST_MESSAGE:
            raise Gone(f"announced an answer of {size:,} bytes: {bytes(received[:40])!r}")
        end = _LENGTH.size + size
        if len(received) < end:
            return None
        message = bytes(received[_LENGTH.size : end])
        del received[:end]
        return message

    def _wait(self, seconds: float) -> int:
        """POLLIN, POLLOUT or nothing, after so long at most."""
        poller = poll()
        poller.register(self._answers, POLLIN)
        if self._unsent:
            poller.register(self._requests, POLLOUT)
        ready = 0
        for pipe, _ in poller.poll(seconds * 1000):
            ready |= POLLIN if pipe == self._answers else POLLOUT
        return ready

    def _send(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._requests, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except (BrokenPipeError, ValueError):
            raise Gone(self._death()) from None

    def _receive(self) -> None:
        data = os.read(self._answers, _CHUNK)
        if not data:
            raise Gone(self._death())
        self._received += data

    def _death(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        return self._how()

    def _how(self) -> str:
        code = self._process.poll()
        if code is None:
            return "closed its pipe"
        if code < 0:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"ended with exit code {code}"
