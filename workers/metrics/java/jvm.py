"""Owns every JVM: each runs in a child process of ours, so that a Java that dies, hangs or talks
nonsense takes nothing with it. The next call starts a new one.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from select import POLLIN, POLLOUT, poll
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self

from service.contract.errors import Canceled, JavaFailed, MetricFailed
from workers.metrics.java.jvm_child import LENGTH
from workers.progress import Progress, Stop, never, silent

# METEOR's table of paraphrases takes most of 768m, and no more is used (0.67 GB resident) until a
# caption comes of 10,000 characters: 5,000 times "a" need this much (and 14 s).
_HEAP = "1536m"
_DEADLINE = 120.0  # seconds for one batch; the first of METEOR reads its table (5 s, busy 15 s)
_POLL_MS = 50
_LAST_WORDS = 4000  # bytes of stderr that are kept
_LARGEST_ANSWER = 1 << 28
_CHUNK = 1 << 16
_START = "from workers.metrics.java.jvm_child import main; main()"
_OURS = Path(__file__).resolve().parents[3]  # where `workers` is found
_KEPT = ("LD_LIBRARY_PATH", "TMPDIR")  # Python may need them to start; secrets stay here


class Jvm:
    """Started by the first call, kept warm until `close`. One call at a time; more wait.

    `heap` bounds Java's memory, `deadline` the seconds of a batch; `jars` stand beside those that
    the kind has of its own.
    """

    def __init__(
        self,
        kind: str = "coco",
        *,
        heap: str = _HEAP,
        deadline: float = _DEADLINE,
        jars: Sequence[Path] = (),
    ) -> None:
        self._kind = kind
        self._heap = heap
        self._deadline = deadline
        self._jars = tuple(map(str, jars))
        self._child: _Child | None = None
        self._calls = 0
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The child's, and its process group's; None before the first call."""
        return self._child.pid if self._child else None

    def call(
        self,
        operation: str,
        items: Sequence[Any],
        *,
        batch: int = 250,
        deadline: float | None = None,
        stop: Stop = never,
        progress: Progress = silent,
    ) -> list[Any]:
        """An answer for each item. MetricFailed where Java refuses an item, JavaFailed where the
        child dies, hangs or answers nonsense, Canceled where `stop` says so: within 50 ms, by
        killing the child.
        """
        answers: list[Any] = []
        with self._lock:
            for start in range(0, len(items), batch):
                part = list(items[start : start + batch])
                answers += self._ask(operation, part, start, deadline or self._deadline, stop)
                progress(len(answers), len(items))
        return answers

    def close(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def _ask(
        self, operation: str, items: list[Any], start: int, deadline: float, stop: Stop
    ) -> list[Any]:
        self._calls += 1
        request = {"id": self._calls, "operation": operation, "items": items}
        try:
            body = self._running().exchange(json.dumps(request).encode(), deadline, stop)
            answer = _parsed(body, request)
        except _Broken as error:
            raise JavaFailed(f"{operation}: Java {error}{self._buried()}") from None
        except BaseException:  # canceled, interrupted: what the child says later is not for us
            self.close()
            raise
        if "error" not in answer:
            answers: list[Any] = answer["answers"]
            return answers
        if answer.get("fatal"):
            self.close()
        item = answer.get("item")
        where = "" if item is None else f" item {start + item}:"
        raise MetricFailed(f"{operation}:{where} {answer['error']}")

    def _running(self) -> "_Child":
        """The warm child, or a new one where it has died meanwhile: no fault of this call."""
        if self._child is not None and not self._child.is_alive():
            self.close()
        if self._child is None:
            self._child = _Child([self._kind, str(os.getpid()), self._heap, *self._jars])
        return self._child

    def _buried(self) -> str:
        """Ends the child; its last words, as the end of a message."""
        child, self._child = self._child, None
        words = child.end() if child else ""
        return f"; its last words: {words}" if words else "; it said nothing"


class _Broken(Exception):
    pass


def _parsed(body: bytes, request: dict[str, Any]) -> dict[str, Any]:
    """An answer to this very request: an error, or as many answers as it has items."""
    try:
        found = json.loads(body)
    except ValueError:
        raise _Broken(f"answered what is no JSON: {body[:40]!r}") from None
    if not isinstance(found, dict) or found.get("id") != request["id"]:
        raise _Broken(f"answered something else than was asked: {body[:40]!r}")
    answers, items = found.get("answers"), request["items"]
    if "error" not in found and not (isinstance(answers, list) and len(answers) == len(items)):
        raise _Broken(f"did not give one answer for each of {len(items)} items")
    return found


class _Child:
    """One process, its pipes, and a thread that listens to its stderr."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._words = b""
        started: Future[subprocess.Popen[bytes]] = Future()
        # The kernel kills the child when the *thread* that started it ends: so it is the one that
        # lives as long as the child does, not some caller's.
        self._listener = Thread(target=self._live, args=(arguments, started), daemon=True)
        self._listener.start()
        self._process = started.result()
        self.pid = self._process.pid
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def exchange(self, body: bytes, seconds: float, stop: Stop) -> bytes:
        """Writes and reads at once, so that two full pipes cannot wait for each other."""
        unsent = memoryview(LENGTH.pack(len(body)) + body)
        received = bytearray()
        until = time.monotonic() + seconds
        while not _is_whole(received):
            if stop():
                raise Canceled("stopped while Java was computing")
            if time.monotonic() > until:
                raise _Broken(f"gave no answer within {seconds:g} s")
            ready = self._wait(writing=bool(unsent))
            if ready & POLLOUT:
                unsent = unsent[self._send(unsent) :]
            if ready & POLLIN:
                received += self._receive()
        if unsent:
            raise _Broken("answered before it had read the question")
        return bytes(received[LENGTH.size :])

    def end(self) -> str:
        """Kills the whole group; what the child said last."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._listener.join(timeout=5)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        return self._words.decode(errors="replace").strip()

    def _live(self, arguments: Sequence[str], started: "Future[subprocess.Popen[bytes]]") -> None:
        try:
            process = subprocess.Popen(  # noqa: S603  our own program
                [sys.executable, "-P", "-c", _START, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(),
                process_group=0,
            )
        except BaseException as error:  # noqa: BLE001  the thread that waits raises it
            started.set_exception(error)
            return
        started.set_result(process)
        assert process.stderr is not None
        with process.stderr as stream:
            while said := os.read(stream.fileno(), _CHUNK):
                self._words = (self._words + said)[-_LAST_WORDS:]

    def _wait(self, *, writing: bool) -> int:
        """POLLIN, POLLOUT or nothing, after 50 ms at most."""
        poller = poll()
        poller.register(self._answers, POLLIN)
        if writing:
            poller.register(self._requests, POLLOUT)
        ready = 0
        for pipe, _ in poller.poll(_POLL_MS):
            ready |= POLLIN if pipe == self._answers else POLLOUT
        return ready

    def _send(self, data: memoryview) -> int:
        try:
            return os.write(self._requests, data[:_CHUNK])
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            raise _Broken(self._death()) from None

    def _receive(self) -> bytes:
        data = os.read(self._answers, _CHUNK)
        if not data:
            raise _Broken(self._death())
        return data

    def _death(self) -> str:
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _is_whole(received: bytearray) -> bool:
    if len(received) < LENGTH.size:
        return False
    size: int = LENGTH.unpack_from(received)[0]
    if size > _LARGEST_ANSWER:
        raise _Broken(f"announced an answer of {size:,} bytes: {bytes(received[:40])!r}")
    if len(received) > LENGTH.size + size:
        raise _Broken("said more than its answer")
    return len(received) == LENGTH.size + size


def _environment() -> dict[str, str]:
    """Nothing but what is needed to start; the same modules are found there as here."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = [folder or str(Path.cwd()) for folder in sys.path] + [str(_OURS)]
    return {**kept, "LC_ALL": "C.UTF-8", "PYTHONPATH": os.pathsep.join(path)}
