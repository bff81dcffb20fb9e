"""The warm child of a worker, and its parent's view of it.

The child keeps torch, the last models or a JVM between works. The parent never imports them: it
sends a request, listens for progress, and ends the child's whole process group when the work is
canceled, late, too large, or when the child is lost. Lines of JSON over pipes, never pickle.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Thread
from typing import Any, Protocol

import psutil

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
_SHARED_CORES = {"OMP_WAIT_POLICY": "PASSIVE"}  # threads that wait must not spin: cores are shared
_LAST_LINES = 40  # of the child's stderr that are kept
_STOP_SECONDS = 5.0


@dataclass(frozen=True)
class Progress:
    done: int
    total: int


@dataclass(frozen=True)
class Answer:
    """Either a result or an error, as the child put it."""

    content: Mapping[str, Any]


class Gone(Exception):
    """The child's pipe closed: it died, or was killed."""


class Warm(Protocol):
    """What a runner has do its works."""

    peak_bytes: int

    def send(self, request: Mapping[str, Any]) -> None: ...

    def receive(self, seconds: float) -> Progress | Answer | None:
        """What it says next; None where it says nothing for so long."""
        ...

    def memory(self) -> int: ...

    def end(self) -> str:
        """At once; how it ended."""
        ...

    def close(self) -> None: ...

    @property
    def last_output(self) -> str: ...


class Child:
    """One process group: `python -m workers.runtime.child`, started when first needed."""

    def __init__(self, role: str, settings: Mapping[str, str]) -> None:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, "-m", "workers.runtime.child", role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                **_SHARED_CORES,
                **environment,
                **settings,
                "PRESCORE_PARENT": str(os.getpid()),
            },
            start_new_session=True,
        )
        self._buffer = b""
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._listener = Thread(target=self._drain, daemon=True)
        self._listener.start()
        self.peak_bytes = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise Gone from None

    def receive(self, seconds: float) -> Progress | Answer | None:
        """What the child says next; None where it says nothing for so long."""
        assert self._process.stdout is not None
        until = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                return None
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                raise Gone
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        message = json.loads(line)
        if "done" in message:
            return Progress(message["done"], message["total"])
        return Answer(message)

    def memory(self) -> int:
        """Resident bytes of the whole group by now; the peak is kept."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            family = [process, *process.children(recursive=True)]
            now = sum(member.memory_info().rss for member in family)
            self.peak_bytes = max(self.peak_bytes, now)
            return int(now)
        return 0

    def end(self) -> str:
        """Kills the group at once and says how the child ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        return self.how_it_ended()

    def close(self) -> None:
        """Lets an idle child go by itself; kills it where it does not."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.end()

    def how_it_ended(self) -> str:
        code = self._process.poll()
        self._listener.join(timeout=1)
        how = "is alive" if code is None else f"exited with {code}"
        if code is not None and code < 0:
            how = f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"the worker's child {how}"

    @property
    def last_output(self) -> str:
        return "\n".join(self._lines)

    def _drain(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.append(line.decode(errors="replace").rstrip()[:500])
