"""Child processes that end with their parent, and messages to and from them.

A message is four bytes of length and JSON: no separators to escape, and no pickle, which could run
code. The parent has a `ChildProcess`. The child calls `die_with_parent` and `open_private_pipes`,
then `read_message` and `write_message`.
"""

import contextlib
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

from service.engine import presence

_LENGTH = struct.Struct(">I")
_LARGEST_MESSAGE = 1 << 28
_CHUNK = 1 << 16
_STOP_SECONDS = 5.0
_DEATH_SECONDS = 5.0  # for a child whose pipe is closed to end


class ChildGone(Exception):
    """The child has died, or has sent something that is not a message."""


def die_with_parent(parent: int) -> None:
    """End this process with its parent, even if that has ended before."""
    presence.end_with_parent()
    if os.getppid() != parent:
        sys.exit("the parent has ended already")


def open_private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes of requests and answers. What libraries print to stdout goes to stderr."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return requests, answers


def read_message(stream: BinaryIO) -> Any:
    """The next message; None if the parent has closed the pipe."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return json.loads(stream.read(_LENGTH.unpack(head)[0]))


def write_message(stream: BinaryIO, message: Mapping[str, Any]) -> None:
    stream.write(_framed(message))
    stream.flush()


def _framed(message: Mapping[str, Any]) -> bytes:
    body = json.dumps(message).encode()
    return _LENGTH.pack(len(body)) + body


class ChildProcess:
    """A child in its own process group, its pipes, and a thread that reads its stderr."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        output_bytes: int,
        largest: int = _LARGEST_MESSAGE,
        descriptors: Sequence[int] = (),
    ) -> None:
        """`output_bytes`: how much of the end of stderr to keep. `largest`: bytes of a message.
        `descriptors`: which of this process's it inherits, under the same numbers.
        """
        self._largest = largest
        self._output = b""
        self._output_bytes = output_bytes
        started: Future[subprocess.Popen[bytes]] = Future()
        # The kernel kills the child when the *thread* that started it ends, so the child is started
        # by the thread that reads its stderr, and not by a caller's thread.
        self._listener = Thread(
            target=self._run, args=(command, environment, descriptors, started), daemon=True
        )
        self._listener.start()
        self._process = started.result()
        self.pid = self._process.pid
        self.ended_with: int | None = None  # its return code, if it ended before `end`
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)
        self._unsent = memoryview(b"")
        self._received = bytearray()
        self._is_ended = False

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; `receive` sends the rest if the pipe is full. It reads and writes at the
        same time, so that two full pipes cannot block each other.
        """
        self._unsent = memoryview(bytes(self._unsent) + _framed(message))
        self._send()

    @property
    def unsent(self) -> int:
        """Bytes that are not sent yet."""
        return len(self._unsent)

    @property
    def unread(self) -> int:
        """Bytes received after the last message."""
        return len(self._received)

    def receive(self, seconds: float) -> bytes | None:
        """The next message's JSON; None if there is none within `seconds`."""
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
        """Kill the whole group at once; returns how the child ended, as text. A second call kills
        nothing: the group's id may be another's by then.
        """
        if self._is_ended:
            return self._how()
        self._is_ended = True
        self.ended_with = self._process.poll()
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
        """Let an idle child end by itself, or kill it after some seconds."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        self.end()

    @property
    def last_output(self) -> str:
        return self._output.decode(errors="replace").strip()

    def _run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        descriptors: Sequence[int],
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
                pass_fds=descriptors,
            )
        except BaseException as error:  # noqa: BLE001  the thread that waits raises it
            started.set_exception(error)
            return
        started.set_result(process)
        assert process.stderr is not None
        with process.stderr as stream:
            while output := os.read(stream.fileno(), _CHUNK):
                self._output = (self._output + output)[-self._output_bytes :]

    def _message(self) -> bytes | None:
        received = self._received
        if len(received) < _LENGTH.size:
            return None
        size: int = _LENGTH.unpack_from(received)[0]
        if size > self._largest:
            raise ChildGone(f"announced an answer of {size:,} bytes: {bytes(received[:40])!r}")
        end = _LENGTH.size + size
        if len(received) < end:
            return None
        message = bytes(received[_LENGTH.size : end])
        del received[:end]
        return message

    def _wait(self, seconds: float) -> int:
        """Wait at most `seconds` for the pipes: POLLIN, POLLOUT, both or 0."""
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
            raise ChildGone(self._death()) from None

    def _receive(self) -> None:
        data = os.read(self._answers, _CHUNK)
        if not data:
            raise ChildGone(self._death())
        self._received += data

    def _death(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_DEATH_SECONDS)
        return self._how()

    def _how(self) -> str:
        code = self._process.poll()
        if code is None:
            return "closed its pipe"
        if code < 0:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"ended with exit code {code}"
