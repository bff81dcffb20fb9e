"""Owns every JVM. Each runs in a child process, so that nothing else fails if Java dies, hangs or
answers nonsense. The next call starts a new one.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Self

from service.contract.errors import JavaFailed, MetricFailed
from workers.processes import ChildGone, ChildProcess
from workers.progress import Progress, ignore_progress

# METEOR's table of paraphrases takes most of 768m, and no more is used (0.67 GB resident) until
# there is a caption of 10,000 characters: 5,000 times "a" need this much (and 14 s).
_HEAP = "1536m"
_DEADLINE = 120.0  # seconds for one batch; METEOR's first reads its table (5 s; 15 s if busy)
_POLL_SECONDS = 0.05
_LAST_OUTPUT = 4000  # bytes of stderr that are kept
_START = "from workers.metrics.java.jvm_child import main; main()"
_OURS = Path(__file__).resolve().parents[3]  # where `workers` is found
_KEPT = ("LD_LIBRARY_PATH", "TMPDIR")  # Python may need these to start; secrets are not passed on

Tell = Callable[[], None]


class Jvm:
    """A child with Java. The first call starts it; it is kept warm until `close`. It serves one
    call at a time; more calls wait.

    `heap` limits Java's memory, `deadline` the seconds of a batch; `jars` are added to the kind's
    own jars.
    """

    def __init__(
        self,
        kind: str = "coco",
        *,
        heap: str = _HEAP,
        deadline: float = _DEADLINE,
        jars: Sequence[Path] = (),
    ) -> None:
        self.kind = kind
        self._heap = heap
        self._deadline = deadline
        self._jars = tuple(map(str, jars))
        self._child: ChildProcess | None = None
        self._calls = 0
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The id of the child and of its process group; None before the first call."""
        return self._child.pid if self._child else None

    def call(
        self,
        operation: str,
        items: Sequence[Any],
        *,
        batch: int = 250,
        first: int = 0,
        deadline: float | None = None,
        progress: Progress = ignore_progress,
    ) -> list[Any]:
        """An answer for each item; messages count them from `first`. `progress` is called after
        each batch, and every 50 ms while Java computes: if it raises then (Canceled), the child is
        killed. Raises MetricFailed if Java refuses an item, JavaFailed if the child dies, hangs or
        answers nonsense.
        """
        answers: list[Any] = []

        def tell() -> None:
            progress(len(answers), len(items))

        with self._lock:
            for start in range(0, len(items), batch):
                part = list(items[start : start + batch])
                answers += self.ask(
                    operation, part, first + start, deadline or self._deadline, tell
                )
                tell()
        return answers

    def close(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def ask(
        self, operation: str, items: Sequence[Any], start: int, deadline: float, tell: Tell
    ) -> list[Any]:
        """Ask for one batch, whose first item is the call's item `start`; `tell` is called while
        Java computes. Raises as `call` does.
        """
        self._calls += 1
        request = {"id": self._calls, "operation": operation, "items": items}
        try:
            answer = _parsed(_exchange(self._running(), request, deadline, tell), request)
        except ChildGone as error:
            raise JavaFailed(f"{operation}: Java {error}{self._ended()}") from None
        except BaseException:  # canceled or interrupted: nobody waits for the child's answer
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

    def _running(self) -> ChildProcess:
        """The warm child, or a new one if it has died meanwhile, which is no fault of this call."""
        if self._child is not None and not self._child.is_alive():
            self.close()
        if self._child is None:
            arguments = [self.kind, str(os.getpid()), self._heap, *self._jars]
            command = [sys.executable, "-P", "-c", _START, *arguments]
            self._child = ChildProcess(command, _environment(), _LAST_OUTPUT)
        return self._child

    def _ended(self) -> str:
        """End the child; returns its last output, as the end of a message."""
        child, self._child = self._child, None
        if child is None:
            return ""
        child.end()
        output = child.last_output
        return f"; its last output: {output}" if output else "; it wrote nothing"


def _exchange(child: ChildProcess, request: dict[str, Any], seconds: float, tell: Tell) -> bytes:
    child.send(request)
    until = time.monotonic() + seconds
    while (body := child.receive(_POLL_SECONDS)) is None:
        tell()
        if time.monotonic() > until:
            raise ChildGone(f"gave no answer within {seconds:g} s")
    if child.unsent:
        raise ChildGone("answered before it had read the question")
    if child.unread:
        raise ChildGone("said more than its answer")
    return body


def _parsed(body: bytes, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to this request: an error, or as many answers as the request has items."""
    try:
        found = json.loads(body)
    except ValueError:
        raise ChildGone(f"answered what is no JSON: {body[:40]!r}") from None
    if not isinstance(found, dict) or found.get("id") != request["id"]:
        raise ChildGone(f"answered something else than was asked: {body[:40]!r}")
    answers, items = found.get("answers"), request["items"]
    if "error" not in found and not (isinstance(answers, list) and len(answers) == len(items)):
        raise ChildGone(f"did not give one answer for each of {len(items)} items")
    return found


def _environment() -> dict[str, str]:
    """The child's environment variables: those that it needs to start, and our modules."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = [folder or str(Path.cwd()) for folder in sys.path] + [str(_OURS)]
    return {**kept, "LC_ALL": "C.UTF-8", "PYTHONPATH": os.pathsep.join(path)}
