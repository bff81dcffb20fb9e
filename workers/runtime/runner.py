"""Runs tasks: takes a lease, has the warm child compute the task, and stores how it ended.

The lease is extended every second. The child is ended when the lease is lost (the task was
canceled, or the lease expired and another worker has it), at the deadline, and above the memory
limit. Where the record cannot be written, it is tried again until the lease has ended; nothing is
ended before. A worker that is asked to stop hands its task back.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError

from prescore import plain_text
from service.contract import results
from service.contract.errors import (
    BlobUnreadable,
    ConverterUnavailable,
    MetricUnavailable,
    OutOfMemory,
    StoreUnavailable,
    TaskTimedOut,
    WorkerLost,
)
from service.contract.plan.prices import SHORT_SECONDS
from service.engine import history, leases
from service.engine.leases import Lease
from service.engine.records import Records
from service.engine.task_queue import WakeUpQueue
from service.engine.tracing import contexts
from service.engine.tracing.spans import OFF, UNTOLD, Attributes, Span, Tracer
from service.runs import evaluation_listener
from workers.processes import ChildGone
from workers.runtime.attempt_files import AttemptFiles, ResultRefused, run_in_background
from workers.runtime.memory_share import MemoryExcess, MemoryShare
from workers.runtime.warm_child import ChildAnswer, ChildProgress, ExitCause, TaskExecutor

log = structlog.get_logger()
T = TypeVar("T")

_PASSING = ("internal", "java_failed")  # errors after which another attempt may succeed
BEAT_SECONDS = 1.0
POLL_SECONDS = 0.25
RECYCLE_AFTER = 500  # tasks per child, since libraries leak memory
_CODE, _DETAIL = 100, 4000  # characters of an error
GRACE_SECONDS = 2.0  # for a task to end by itself when the worker is asked to stop


class TaskRunner:
    def __init__(
        self,
        records: Records,
        queue: WakeUpQueue,
        workplace: AttemptFiles,
        name: str,
        child: Callable[[], TaskExecutor],
        memory: MemoryShare | None = None,
        meanwhile: Callable[[], None] | None = None,
        tracer: Tracer = OFF,
    ) -> None:
        """`memory`: what a task may take. `meanwhile` is called each second of a task that is
        not short, or takes longer; `tracer` is told of attempts.
        """
        evaluation_listener.listen_to_engine()
        self.name = name
        self._records = records
        self._queue = queue
        self._workplace = workplace
        self._new_child = child
        self._memory = memory
        self._meanwhile = meanwhile
        self._tracer = tracer
        self._span = UNTOLD  # of the attempt
        self._child: TaskExecutor | None = None
        self._done = 0
        self._begun = 0.0
        self._stop_asked: float | None = None

    def warm_up(self) -> None:
        """Start the child before the first task comes, if there is none that can be used."""
        if self._child is not None and self._child.is_outdated():
            self.close()
        if self._child is None:
            self._child = self._new_child()
            self._done = 0

    def run_first(self, queue: str, *, short: bool = False) -> bool:
        """Perform the task of a queue whose turn it is, if any is ready; returns whether it was.
        `short`: of the short ones alone.
        """
        lease = leases.lease_first_task(self._records, queue, self.name, short=short)
        if lease is not None:
            self._perform(lease)
        return lease is not None

    def _perform(self, lease: Lease) -> None:
        log.info("begin", kind=lease.kind, key=lease.key, attempt=lease.attempt)
        self.warm_up()
        self._begun = time.monotonic()
        with start_attempt_span(self._tracer, lease) as self._span:
            assert self._child is not None
            self.compute(lease, self._child)
        self._done += 1
        if self._done >= RECYCLE_AFTER:
            self.close()
        history.update_noted_runs(self._records)
        self._queue.flush(self._records)

    def compute(self, lease: Lease, child: TaskExecutor) -> None:
        try:
            self._attempt(lease, child)
        except ChildGone:
            self._child_lost(lease, child)
        except ResultRefused as refused:
            self.kill()
            self.fail(lease, WorkerLost.code, str(refused), death=True, retry=True)
        except StoreUnavailable as error:
            self._lose(lease, error.code, error.detail, killed=False)
        except BaseException:  # an interrupt, or no database: nothing may keep running
            self.kill()
            leases.hand_back_task(self._records, lease)
            raise

    def tell(self, outcome: str) -> None:
        """Tell the attempt's span how it ended; errors are told by `fail`."""
        self._span.tell({"prescore.outcome": outcome})

    def ask_to_stop(self) -> None:
        self._stop_asked = self._stop_asked or time.monotonic()

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None
        self._note_end()

    def _note_end(self) -> None:
        if self._memory is not None:
            self._memory.forget()

    def _attempt(self, lease: Lease, child: TaskExecutor) -> None:
        """Fetch inputs, have the child compute, store the result; extend the lease meanwhile."""
        with self._workplace.folder() as folder, contextlib.suppress(_AttemptEnded):
            watch = _LeaseWatch(self, lease, child)
            try:
                digests = dict.fromkeys([*lease.inputs.values(), *lease.parts])
                files = watch.until_done(lambda: self._workplace.fetch(digests))
            except BlobUnreadable as error:
                self._recompute(lease, error)
                return
            result = folder / "result"
            child.send(
                {
                    "kind": lease.kind,
                    "inputs": dict(lease.inputs),
                    "parts": list(lease.parts),
                    "parameters": dict(lease.parameters),
                    "files": files,
                    "result": str(result),
                }
            )
            answer = judge_answer(lease.kind, watch.until_answered())
            if isinstance(answer, TaskError):
                self._refused(lease, answer)
                return
            digest = watch.until_done(lambda: self._workplace.store(result))
            kept = watch.until_written(
                lambda: leases.finish_attempt(self._records, lease, digest, answer)
            )
            self.tell("done" if kept else "refused: too late")
            if kept:
                self._workplace.store_again(digest, result)
            log.info("end", kind=lease.kind, key=lease.key, attempt=lease.attempt, recorded=kept)

    def extend_lease(self, lease: Lease) -> bool:
        """Extend the lease; False if the task was canceled, or another worker has it."""
        return leases.extend_lease(self._records, lease)

    def store_progress(self, lease: Lease, progress: ChildProgress) -> None:
        leases.store_progress(self._records, lease, progress.done, progress.total)

    def look_around(self, lease: Lease) -> None:
        """Tell runs that were noted, and look whether short tasks are ready, beside a long one."""
        history.update_noted_runs(self._records, most=1)
        is_short = lease.short and time.monotonic() - self._begun <= SHORT_SECONDS
        if self._meanwhile is not None and not is_short:
            self._meanwhile()

    def is_over(self, lease: Lease, child: TaskExecutor) -> bool:
        """End the attempt at its limits, or if the worker must stop; returns whether it ended."""
        if time.time() > lease.deadline:
            self.kill()
            self.fail(
                lease, TaskTimedOut.code, "the task's deadline passed", death=False, retry=False
            )
            return True
        if excess := self._find_excess(child):
            self.kill()
            self.end_as_too_large(lease, excess, child.peak_bytes)
            return True
        if self._stop_asked and time.monotonic() - self._stop_asked > GRACE_SECONDS:
            self.kill()
            leases.hand_back_task(self._records, lease)
            self.tell("handed back")
            return True
        return False

    def end_as_too_large(self, lease: Lease, excess: MemoryExcess, peak: int) -> None:  # noqa: ARG002
        code, retry = OutOfMemory.code, not excess.is_alone
        self.fail(lease, code, excess.detail, death=False, retry=retry)

    def rest(self) -> None:
        """End the child, which has nothing to do, where others need its memory."""
        if self._child is not None and self._find_excess(self._child):
            self.close()

    def _find_excess(self, child: TaskExecutor) -> MemoryExcess | None:
        return None if self._memory is None else self._memory.find_excess(child.memory())

    def _recompute(self, lease: Lease, error: BlobUnreadable) -> None:
        log.warning("damaged input", kind=lease.kind, key=lease.key, digest=error.digest)
        self.tell("an input was damaged")
        if not leases.recompute_input(self._records, lease, error.digest):
            detail = f"{error.detail}; upload it again"
            self.fail(lease, "blob_missing", detail, death=False, retry=False)

    def _refused(self, lease: Lease, error: "TaskError") -> None:
        """Record the error that the child answered."""
        code, detail = error.code, error.detail
        if code == MetricUnavailable.code:
            log.warning("unavailable", kind=lease.kind, key=lease.key, detail=detail)
            leases.make_task_unavailable(self._records, lease, {"code": code, "detail": detail})
            self.tell(code)
        elif code == ConverterUnavailable.code:
            self._lose(lease, code, detail, killed=False)
        else:
            self.fail(lease, code, detail, death=False, retry=code in _PASSING)

    def fail(self, lease: Lease, code: str, detail: str, *, death: bool, retry: bool) -> None:
        log.warning("failed", kind=lease.kind, key=lease.key, code=code, detail=detail)
        error = {"code": code, "detail": detail}
        self._span.fail(code)
        leases.fail_attempt(self._records, lease, error, death=death, retry=retry)

    def _lose(self, lease: Lease, code: str, detail: str, *, killed: bool) -> None:
        """Record that the attempt was ended from outside."""
        log.warning("lost", kind=lease.kind, key=lease.key, code=code, detail=detail)
        self._span.fail(code)
        leases.lose_attempt(self._records, lease, {"code": code, "detail": detail}, killed=killed)

    def _child_lost(self, lease: Lease, child: TaskExecutor) -> None:
        ended, output = child.end(), child.last_output[-2000:]
        self._child = None
        self._note_end()
        log.warning("child lost", kind=lease.kind, key=lease.key, how=ended.how, last_output=output)
        if ended.cause is ExitCause.OUTSIDE:
            self._lose(lease, WorkerLost.code, ended.how, killed=True)
        else:
            code = OutOfMemory.code if ended.cause is ExitCause.MEMORY else WorkerLost.code
            self.fail(lease, code, ended.how, death=True, retry=True)

    def kill(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None
        self._note_end()


@dataclass(frozen=True)
class TaskError:
    """The error by which a child has ended a task."""

    code: str
    detail: str


def judge_answer(kind: str, content: Mapping[str, Any]) -> "dict[str, Any] | TaskError":
    """The summary of a task of this kind, or its error, in an executor's answer, which may be
    anything. Raises ResultRefused.
    """
    match content:
        case {"error": {"code": str(code), "detail": str(detail)}}:
            return TaskError(code[:_CODE], plain_text.quoted(detail[:_DETAIL]))
        case {"summary": {**nothing}} if not nothing:
            return {}
        case {"summary": {**summary}}:
            with contextlib.suppress(ValidationError):
                return results.find_summary_model(kind).model_validate(summary).model_dump()
    raise ResultRefused(f"expected a summary of the task {kind}, or an error, found neither")


class _AttemptEnded(Exception):
    """The attempt was ended before its result, and the reason is stored."""


class _LeaseWatch:
    """Extends one attempt's lease, and checks its limits, while something runs."""

    def __init__(self, runner: TaskRunner, lease: Lease, child: TaskExecutor) -> None:
        self._runner = runner
        self._lease = lease
        self._child = child
        self._progress = self._stored = ChildProgress(0, 0)
        self._beaten = time.monotonic()
        self._extend()

    def until_done(self, call: Callable[[], T]) -> T:
        """Run `call` in a thread, so that a slow disk or network does not delay the lease."""
        future = run_in_background(call)
        while True:
            with contextlib.suppress(TimeoutError):
                return future.result(POLL_SECONDS)
            self._look()

    def until_answered(self) -> Mapping[str, Any]:
        while True:
            message = self._child.receive(POLL_SECONDS)
            if isinstance(message, ChildProgress):
                self._progress = message
            elif isinstance(message, ChildAnswer):
                return message.content
            self._look()

    def until_written(self, write: Callable[[], bool]) -> bool:
        """Write how the attempt ended; while the record cannot be written, until the lease ends."""
        while True:
            try:
                return write()
            except DBAPIError as error:
                self._raise_if_over(error)
                time.sleep(POLL_SECONDS)

    def _extend(self) -> None:
        self._lease_until = time.monotonic() + leases.LEASE_SECONDS

    def _raise_if_over(self, error: DBAPIError) -> None:
        """Raise an error of the record if the lease has ended meanwhile; else log it."""
        left = self._lease_until - time.monotonic()
        if left <= 0:
            raise error
        log.warning(
            "the record cannot be written; trying again",
            kind=self._lease.kind,
            key=self._lease.key,
            lease_seconds=round(left, 1),
            error=type(error).__name__,
        )

    def _is_ours(self) -> bool:
        try:
            ours = self._runner.extend_lease(self._lease)
        except DBAPIError as error:
            self._raise_if_over(error)
            return True
        self._extend()
        if ours:
            # Other writers may hold this up for as long as a transaction waits, which is less than
            # a lease: it is told again with the next beat.
            with contextlib.suppress(DBAPIError):
                self._tell()
        return ours

    def _tell(self) -> None:
        if self._progress != self._stored:
            self._runner.store_progress(self._lease, self._progress)
            self._stored = self._progress
        self._runner.look_around(self._lease)

    def _look(self) -> None:
        if time.monotonic() - self._beaten > BEAT_SECONDS:
            self._beaten = time.monotonic()
            if not self._is_ours():
                log.info("no longer ours", kind=self._lease.kind, key=self._lease.key)
                self._runner.kill()
                self._runner.tell("given up")
                raise _AttemptEnded
        if self._runner.is_over(self._lease, self._child):
            raise _AttemptEnded


def start_attempt_span(tracer: Tracer, lease: Lease) -> AbstractContextManager[Span]:
    """Its attributes say what the task is by kind and key; inputs and parameters stay untold."""
    attributes: Attributes = {
        "prescore.task.kind": lease.kind,
        "prescore.task.key": lease.key,
        "prescore.task.attempt": lease.attempt,
        "prescore.queue": lease.queue,
        "prescore.queue.wait_seconds": round(lease.waited, 3),
    }
    return tracer.attempt(
        f"attempt {lease.kind}", contexts.parse_traceparent(lease.traceparent), attributes
    )
