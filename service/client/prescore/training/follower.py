"""The thread that sends checkpoints and polls their evaluations while a training goes on."""

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from prescore.client import Client
from prescore.errors import InvalidArgument, PrescoreClientError
from prescore.files.bodies import translate_read_errors
from prescore.http import retries
from prescore.http.retries import IN_FLIGHT, PASSING
from prescore.models import Evaluation, SweepRanking
from prescore.training.results import Journal

MOST_OPEN = 8  # evaluations under way at the same time
LEAVE_SECONDS = 1.0  # for a request that is being sent when the watch is abandoned
CTRL_C_SECONDS = 0.2  # not every system interrupts a thread that waits for another
SHORTEST_POLL_SECONDS = 0.5
LONGEST_POLL_SECONDS = 10.0
POLLS_PER_AGE = 10  # an evaluation that has run for 60 s is polled every 6 s
UNSENT = "not sent before the end"

OnScores = Callable[[int, dict[str, float]], None]
T = TypeVar("T")


@dataclass(frozen=True)
class _SavedCheckpoint:
    place: int  # in the journal
    step: int
    path: Path
    stamp: tuple[int, int, int]
    remove: bool

    def done_with(self) -> None:
        if self.remove:
            self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class _OpenEvaluation:
    place: int
    id: str
    since: float
    due: float


@dataclass(frozen=True)
class WatchLimits:
    waiting: int  # checkpoints
    patience: float  # seconds without an answer, where these are bounded
    strict: bool  # they are bounded always, else only at the end


class _WatchEnded(Exception):
    pass


class Follower:
    def __init__(
        self,
        client: Client,
        request: Mapping[str, Any],
        journal: Journal,
        on_scores: OnScores,
        limits: WatchLimits,
    ) -> None:
        self._client = client
        self._request = request
        self._journal = journal
        self._on_scores = on_scores
        self._limits = limits
        self._waiting: deque[_SavedCheckpoint] = deque()
        self._open: dict[int, _OpenEvaluation] = {}
        self._closing = False
        self._abandoned = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._task, name="prescore-watch", daemon=True)
        self._thread.start()

    def put(self, step: int, path: Path, *, remove: bool) -> None:
        """Add a checkpoint to those waiting; where too many wait, the oldest is left out."""
        with self._changed:
            if self._closing:
                raise InvalidArgument(f"{path}: this watch has ended")
            place = self._journal.add(step, path)
            try:
                self._waiting.append(_SavedCheckpoint(place, step, path, _read_stamp(path), remove))
            except InvalidArgument as error:
                self._journal.fail(place, error)
            late = self._waiting.popleft() if len(self._waiting) > self._limits.waiting else None
            self._changed.notify_all()
        if late is not None:
            self._leave_out(late)

    def rank(self, sweep: Mapping[str, str], metric: str, **options: Any) -> SweepRanking | None:
        """Rank the runs of a sweep; None, with a warning, where there is no answer."""
        if self._closing:
            raise InvalidArgument("should_stop_in: this watch has ended")
        try:
            return self._client.rank(self._request["dataset"], sweep, metric, **options)
        except PrescoreClientError as error:
            reason = str(error).partition("\n")[0]
            line = f"should_stop_in: {reason}"
            if retries.may_pass(error, PASSING):
                self._journal.warn(f"{line}; training goes on", "network")
            else:
                self._journal.trouble(line, error)
            return None

    def end(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for the evaluations under way; leave the others."""
        try:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            until = time.monotonic() + timeout
            while self._thread.is_alive() and (left := until - time.monotonic()) > 0:
                self._thread.join(min(left, CTRL_C_SECONDS))
        finally:
            with self._changed:
                self._abandoned = True
                self._changed.notify_all()
            self._thread.join(LEAVE_SECONDS)
            self._leave_the_rest()

    def _leave_out(self, saved: _SavedCheckpoint) -> None:
        self._journal.note(saved.place, problem="left out: later ones were waiting to be sent")
        saved.done_with()
        self._journal.warn(
            "checkpoints are saved faster than they are evaluated: older ones are left out, "
            f"the first is step {saved.step}",
            once_for="left out",
        )

    def _leave_the_rest(self) -> None:
        with self._changed:
            unsent, self._waiting = list(self._waiting), deque()
            unfinished, self._open = [each.id for each in self._open.values()], {}
        for saved in unsent:
            self._leave_unsent(saved)
        if unfinished:
            reason = "not waited for any longer; they go on in the service"
            self._journal.warn(f"{', '.join(unfinished)}: {reason}")

    def _leave_unsent(self, saved: _SavedCheckpoint) -> None:
        self._journal.note(saved.place, problem=UNSENT)
        self._journal.warn(f"step {saved.step}: {UNSENT}")
        saved.done_with()

    # The methods below run in the thread

    def _task(self) -> None:
        try:
            while (task := self._next()) is not None:
                if isinstance(task, _SavedCheckpoint):
                    self._send(task)
                else:
                    self._look(task)
        except _WatchEnded:
            pass
        finally:
            self._client.close()

    def _next(self) -> _SavedCheckpoint | _OpenEvaluation | None:
        """Wait for the next checkpoint to send or evaluation to poll; None at the end."""
        with self._changed:
            while not self._abandoned:
                if self._waiting and len(self._open) < MOST_OPEN:
                    return self._waiting.popleft()
                if self._closing and not self._waiting and not self._open:
                    return None
                first = min(self._open.values(), key=lambda each: each.due, default=None)
                pause = None if first is None else first.due - time.monotonic()
                if first is not None and pause is not None and pause <= 0:
                    return first
                self._changed.wait(pause)
        return None

    def _send(self, saved: _SavedCheckpoint) -> None:
        labels = {**self._request["labels"], "step": str(saved.step)}
        request = {**self._request, "labels": labels, "idempotency_key": uuid.uuid4().hex}
        try:
            digest = self._persist(lambda: self._uploaded(saved))
            evaluation = self._persist(lambda: self._client.submit(checkpoint=digest, **request))
        except PrescoreClientError as error:
            self._journal.fail(saved.place, error)
            saved.done_with()
        except _WatchEnded:
            self._leave_unsent(saved)
            raise
        else:
            saved.done_with()
            now = time.monotonic()
            self._see(_OpenEvaluation(saved.place, evaluation.id, now, now), evaluation)

    def _uploaded(self, saved: _SavedCheckpoint) -> str:
        digest = self._client.upload_checkpoint(saved.path, self._go_on)
        if _read_stamp(saved.path) != saved.stamp:
            raise InvalidArgument(
                f"{saved.path} was written to before it was sent; give each checkpoint its own file"
            )
        return digest

    def _go_on(self, done: int, total: int) -> None:
        del done, total
        if self._abandoned:
            raise _WatchEnded

    def _look(self, task: _OpenEvaluation) -> None:
        try:
            evaluation = self._persist(lambda: self._client.evaluation(task.id))
        except PrescoreClientError as error:
            self._forget(task)
            self._journal.fail(task.place, error)
        else:
            self._see(task, evaluation)

    def _see(self, task: _OpenEvaluation, evaluation: Evaluation) -> None:
        before, result = self._journal.note(task.place, evaluation=evaluation)
        if evaluation.ended:
            self._forget(task)
        else:
            now = time.monotonic()
            age = (now - task.since) / POLLS_PER_AGE
            pause = min(LONGEST_POLL_SECONDS, max(SHORTEST_POLL_SECONDS, age))
            with self._changed:
                self._open[task.place] = replace(task, due=now + pause)
        if evaluation.status in ("failed", "canceled"):
            error = evaluation.error
            reason = f": {error.detail or error.code}" if error else ""
            what = f"step {result.step}: {evaluation.id} {evaluation.status}"
            self._journal.warn(f"{what}{reason}")
        news = result.numbers.items() - before.numbers.items()
        if news:
            named = {name: value for name, value in result.numbers.items() if (name, value) in news}
            self._report(result.step, named)

    def _forget(self, task: _OpenEvaluation) -> None:
        with self._changed:
            self._open.pop(task.place, None)

    def _report(self, step: int, news: dict[str, float]) -> None:
        if self._abandoned:
            return
        try:
            self._on_scores(step, news)
        except Exception as error:  # noqa: BLE001  code of the caller, which may raise anything
            self._journal.trouble(f"on_scores: {type(error).__name__}: {error}", error)

    def _persist(self, attempt: Callable[[], T]) -> T:
        """Repeat `attempt` while the service cannot be reached; _Abandoned when the watch ends."""
        since = time.monotonic()
        failures = 0
        while not self._abandoned:
            try:
                return attempt()
            except PrescoreClientError as error:
                if not self._may_try_again(error, since):
                    raise
                line = str(error).partition("\n")[0]
                self._journal.warn(
                    f"{line}; training goes on, and the request is tried again", "network"
                )
                pause = retries.choose_pause(failures, error)
            failures += 1
            with self._changed:
                self._changed.wait_for(lambda: self._abandoned, pause)
        raise _WatchEnded

    def _may_try_again(self, error: PrescoreClientError, since: float) -> bool:
        bounded = self._limits.strict or self._closing
        late = bounded and time.monotonic() - since > self._limits.patience
        return not late and retries.may_pass(error, PASSING | {IN_FLIGHT})


def _read_stamp(path: Path) -> tuple[int, int, int]:
    """Identifies a file's present content: another value after it was written to or replaced."""
    with translate_read_errors(path):
        status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
