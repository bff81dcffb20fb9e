"""Performs tasks in the calling process, by the rules of a worker and without Redis."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import structlog

from service.contract.errors import RunCanceled
from service.engine import presence
from service.engine.blobs import Blobs
from service.engine.records import Records
from service.engine.task_queue import InProcessQueue, WakeUpQueue
from service.engine.tracing.spans import OFF, Tracer
from workers import jobs
from workers.jobs.toolbox import Toolbox
from workers.runtime import attempt_files
from workers.runtime.attempt_files import AttemptFiles
from workers.runtime.runner import TaskRunner
from workers.runtime.warm_child import ChildAnswer, ChildExit, ChildProgress, ExitCause

log = structlog.get_logger()

_PAUSE_SECONDS = 1.0  # after a failure of the record
_STOP_SECONDS = 5.0  # for a running task to be handed back


class ComputingThread:
    """Computes requests in a thread of this process, in the place of a worker's warm child."""

    peak_bytes = 0
    last_output = ""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._messages: SimpleQueue[ChildProgress | ChildAnswer] = SimpleQueue()
        self._is_canceled = threading.Event()
        self._thread: threading.Thread | None = None

    def send(self, request: Mapping[str, Any]) -> None:
        self._thread = threading.Thread(target=self._compute, args=(request,), daemon=True)
        self._thread.start()

    def receive(self, seconds: float) -> ChildProgress | ChildAnswer | None:
        try:
            return self._messages.get(timeout=seconds)
        except Empty:
            return None

    def is_outdated(self) -> bool:
        return False

    def memory(self) -> int:
        """Return 0: the memory of this process is no task's alone."""
        return 0

    def processor_seconds(self) -> float:
        return time.process_time()

    def end(self) -> ChildExit:
        """Have the task end at its next report of progress, and wait for that."""
        self._is_canceled.set()
        if self._thread is not None:
            self._thread.join()
        return ChildExit("the task was ended in this process", ExitCause.OWN)

    def close(self) -> None:
        """Nothing to close: the toolbox belongs to the caller."""

    def _compute(self, request: Mapping[str, Any]) -> None:
        self._messages.put(ChildAnswer(jobs.answer_request(request, self._toolbox, self._report)))

    def _report(self, done: int, total: int) -> None:
        if self._is_canceled.is_set():
            raise RunCanceled("the task was canceled")
        self._messages.put(ChildProgress(done, total))


class BackgroundQueue(InProcessQueue):
    """A queue whose tasks one thread of this process performs, one after the other."""

    def __init__(self, perform: Callable[[str], None], records: Records) -> None:
        super().__init__(perform)
        self._records = records
        self._is_wanted, self._is_closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._perform_all, name="tasks", daemon=True)
        self._thread.start()

    def flush(self, records: Records) -> int:  # noqa: ARG002  the protocol's
        self._is_wanted.set()
        return 0

    def close(self, seconds: float) -> None:
        """Begin no more tasks, and wait for the one that is running."""
        self._is_closed.set()
        self._is_wanted.set()
        self._thread.join(seconds)

    def _perform_all(self) -> None:
        while not self._is_closed.is_set():
            self._is_wanted.wait()
            self._is_wanted.clear()
            try:
                super().flush(self._records)
            except Exception:
                log.exception("a task could not be begun or ended; the next one is tried")
                self._is_closed.wait(_PAUSE_SECONDS)
                self._is_wanted.set()

    def _sent(self, records: Records) -> Iterator[int]:
        return takewhile(lambda _: not self._is_closed.is_set(), super()._sent(records))


def open_queue(
    records: Records, blobs: Blobs, folder: Path, toolbox: Toolbox, tracer: Tracer = OFF
) -> InProcessQueue:
    """A queue that performs tasks before a submission returns; `tracer` is told of attempts."""

    def perform(queue: str) -> None:
        runner.run_first(queue)

    at_once = InProcessQueue(perform)
    runner = _runner(records, at_once, AttemptFiles(blobs, folder), toolbox, tracer)
    return at_once


@contextmanager
def open_background_queue(
    records: Records, blobs: Blobs, home: Path, toolbox: Toolbox
) -> Iterator[BackgroundQueue]:
    """A queue for programs that do something else meanwhile. At the end, the task that is running
    is handed back unless it ends soon.
    """

    def perform(queue: str) -> None:
        runner.run_first(queue)

    attempt_files.sweep_attempts(home / "attempts")
    workplace = AttemptFiles(blobs, home / "attempts")
    queue = BackgroundQueue(perform, records)
    runner = _runner(records, queue, workplace, toolbox)
    with presence.stay_present(home, runner.name):
        yield queue
        runner.ask_to_stop()
        queue.close(_STOP_SECONDS)


def _runner(
    records: Records,
    queue: WakeUpQueue,
    workplace: AttemptFiles,
    toolbox: Toolbox,
    tracer: Tracer = OFF,
) -> TaskRunner:
    name = presence.name_worker("in-process")
    return TaskRunner(
        records, queue, workplace, name, lambda: ComputingThread(toolbox), tracer=tracer
    )
