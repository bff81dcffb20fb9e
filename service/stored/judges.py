"""Judges of uploads: a few warm processes that read uploaded files, so that neither the event loop
nor the threads of the API wait for it, and a judge's crash costs one upload alone.

Headers of checkpoints take milliseconds and have judges of their own: none waits for a dataset.
"""

import atexit
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from select import POLLIN, poll
from threading import Event, Lock
from typing import Any

from prescore import model_types
from service.contract import errors, limits
from service.contract.errors import (
    CaptionsRefused,
    ColumnsRefused,
    HeaderTooLarge,
    InvalidBundle,
    RequestRefused,
    ServiceUnavailable,
)

_SHORT = ("checkpoint", "beginning", "columns header", "columns of a split", "captions")
_AT_ONCE = 2  # of each sort; more would not be faster on few cores
_SHORT_SECONDS = 20.0
_LOOK_SECONDS = 0.1  # between two looks whether somebody still wants the answer
_CHUNK = 1 << 16
_COMMAND = [sys.executable, "-m", "service.stored.judge_process"]

Facts = dict[str, Any]
AnswerQuestion = Callable[[Mapping[str, Any]], Mapping[str, Any]]
NOT_YET: Facts = {"not yet": True}  # of a beginning that is right, and tells no more


class JudgeGone(Exception):
    """The judge has died, or was killed because its answer is not wanted any more."""


class Judges:
    """Starts processes when they are needed."""

    def __init__(self, count: int = _AT_ONCE) -> None:
        self._short = ThreadPoolExecutor(count, "judge of headers")
        self._long = ThreadPoolExecutor(count, "judge of datasets")
        self._idle: dict[bool, list[_JudgeProcess | _InlineJudge]] = {True: [], False: []}
        self._new_judge: Callable[[], _JudgeProcess | _InlineJudge] = _JudgeProcess
        self._lock = Lock()
        self._stopped = Event()

    def ask(self, question: str, nobody: Callable[[], bool], **asked: object) -> Future[Facts]:
        """Return a file's facts, or its refusal. Killed when `nobody()` wants the answer any
        more.
        """
        short = question in _SHORT
        pool = self._short if short else self._long
        message = {"question": question, **asked}
        return pool.submit(self._answered, message, nobody, self._stopped, short=short)

    @contextlib.contextmanager
    def staying_here(self, answer: AnswerQuestion) -> Iterator[None]:
        """Judge in this process until the end of the block: the files are its user's own."""
        self.close()
        self._new_judge = lambda: _InlineJudge(answer)
        yield
        self.close()
        self._new_judge = _JudgeProcess

    def give_up(self) -> None:
        """End the processes that judge something just now."""
        with self._lock:
            self._stopped.set()
            self._stopped = Event()

    def close(self) -> None:
        """End all processes; the next question starts new ones."""
        self.give_up()
        with self._lock:
            idle = [judge for judges in self._idle.values() for judge in judges]
            self._idle = {True: [], False: []}
        for judge in idle:
            judge.end()

    def _answered(
        self, asked: Mapping[str, Any], nobody: Callable[[], bool], stopped: Event, *, short: bool
    ) -> Facts:
        seconds = _SHORT_SECONDS if short else limits.JUDGING_SECONDS
        until = time.monotonic() + seconds

        def over() -> bool:
            return stopped.is_set() or nobody()

        for last in (False, True):  # a death that was not this upload's doing is nobody's loss
            try:
                found = self._asked(asked, until, over, short=short)
            except JudgeGone:
                if last or over():
                    raise ServiceUnavailable(
                        "the process that judges uploads ended; try again"
                    ) from None
            except TimeoutError:
                kind = TOO_MUCH.get(asked["question"], InvalidBundle)
                raise kind(f"judging this file takes more than {seconds:.0f} seconds") from None
            else:
                return _facts(found)
        raise AssertionError

    def _asked(
        self, asked: Mapping[str, Any], until: float, over: Callable[[], bool], *, short: bool
    ) -> Mapping[str, Any]:
        if over():
            raise JudgeGone
        judge = self._idle_one(short=short) or self._new_judge()
        try:
            found = judge.ask(asked, until, over)
        except BaseException:
            judge.end()
            raise
        with self._lock:
            self._idle[short].append(judge)
        return found

    def _idle_one(self, *, short: bool) -> "_JudgeProcess | _InlineJudge | None":
        while True:
            with self._lock:
                idle = self._idle[short]
                judge = idle.pop() if idle else None
            if judge is None or judge.is_alive():
                return judge
            judge.end()


@lru_cache(maxsize=1)
def get_judges() -> Judges:
    judges = Judges()
    atexit.register(judges.close)
    return judges


class _InlineJudge:
    """Judges in the thread that asks."""

    def __init__(self, answer: AnswerQuestion) -> None:
        self._answer = answer

    def is_alive(self) -> bool:
        return True

    def ask(
        self,
        asked: Mapping[str, Any],
        until: float,  # noqa: ARG002  as `_Judge`
        over: Callable[[], bool],  # noqa: ARG002
    ) -> Mapping[str, Any]:
        return self._answer(asked)

    def end(self) -> None:
        """Nothing to end."""


class _JudgeProcess:
    """One process, and the pipes to it."""

    def __init__(self) -> None:
        # No secrets of the API's environment; where our packages are, and a folder of its own.
        names = ("LANG", model_types.ADMITTING)
        kept = {name: os.environ[name] for name in names if name in os.environ}
        self._folder = tempfile.mkdtemp(prefix="prescore-judge-")
        kept["TMPDIR"] = self._folder
        self._process = subprocess.Popen(  # noqa: S603  our own program
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(
        self, asked: Mapping[str, Any], until: float, over: Callable[[], bool]
    ) -> Mapping[str, Any]:
        """The answer; Gone or TimeoutError where there is none."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            raise JudgeGone from None
        poller = poll()
        poller.register(process.stdout, POLLIN)
        line = bytearray()
        while not line.endswith(b"\n"):
            if over():
                raise JudgeGone
            if time.monotonic() > until:
                raise TimeoutError
            if poller.poll(_LOOK_SECONDS * 1000):
                data = os.read(process.stdout.fileno(), _CHUNK)
                if not data:
                    raise JudgeGone
                line += data
        try:
            return dict(json.loads(line))
        except (ValueError, TypeError, RecursionError):  # a file has taken it over
            raise JudgeGone from None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _facts(found: Mapping[str, Any]) -> Facts:
    """The facts that a judge found; raises the error that it has told."""
    if "refused" in found:
        kind = getattr(errors, found["refused"])
        assert issubclass(kind, RequestRefused)
        raise kind(found["detail"], pointer=found["at"])
    if "errno" in found:
        raise OSError(found["errno"], found["detail"])
    return dict(found["facts"])


TOO_MUCH: Mapping[str, type[RequestRefused]] = {  # by question; of all others, InvalidBundle
    "checkpoint": HeaderTooLarge,
    "columns header": ColumnsRefused,
    "columns": ColumnsRefused,
    "captions": CaptionsRefused,
    "columns of a split": ColumnsRefused,
}
