"""`prescore.watch`: scores the checkpoints of a training run while it goes on."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from prescore.client import PATIENCE_SECONDS, Client
from prescore.client.requests import EvaluationChoices
from prescore.errors import InvalidArgument
from prescore.names import check_known
from prescore.training.event_files import EventWriter
from prescore.training.follower import Follower, OnScores, WatchLimits
from prescore.training.results import Journal, Result, find_best, find_without, has_plateaued

WAITING = 2
TIMEOUT_SECONDS = 600.0


def watch(
    run: str,
    *,
    dataset: str,
    on_scores: OnScores | None = None,
    labels: Mapping[str, str] | None = None,
    waiting: int = WAITING,
    timeout: float = TIMEOUT_SECONDS,
    strict: bool = False,
    tensorboard: Any = None,
    url: str | None = None,
    key: str | None = None,
    patience: float = PATIENCE_SECONDS,
    **choices: Unpack[EvaluationChoices],
) -> "Watch":
    """Evaluate the checkpoints of a training run on a dataset while the training goes on.

        with prescore.watch("run-7", dataset="flickr8k/val", on_scores=log) as run:
            for epoch in range(30):
                ...
                run.checkpoint(path, step=epoch)
                if run.should_stop(metric="cider_d", patience=3):
                    break
        print(run.best("cider_d").path)

    `on_scores(step, numbers)` is called, in a thread of the watch, with the new numbers of a step:
    forecasts (`forecast/cider_d`) within seconds, scores as they are computed. At most `waiting`
    checkpoints wait to be sent; one more, and the oldest of them is left out. The end of the
    `with` waits at most `timeout` seconds for evaluations under way; after an exception, or
    Ctrl-C, it does not wait.

    With `tensorboard`, a log directory or a SummaryWriter of torch or tensorboardX, the numbers are
    also scalars at their steps, such as `prescore/cider_d`. A writer that you give is not closed.

    Errors are logged once and training goes on; while the service cannot be reached, sending is
    repeated. With `strict`, the next call raises the error, a lost network after `patience`
    seconds. The labels `run` and `step` are added. Of several processes, only one may watch.
    """
    check_known("argument", choices, EvaluationChoices.__annotations__)
    if waiting < 1:
        raise InvalidArgument(f"waiting: expected at least 1 checkpoint, found {waiting}")
    request = {**choices, "dataset": dataset, "labels": {**(labels or {}), "run": run}}
    journal = Journal()
    limits = WatchLimits(waiting, patience, strict)
    events = None if tensorboard is None else EventWriter(tensorboard)
    report = _combine_reports(on_scores or _ignore_scores, events)
    client = Client(url, key, patience=0)
    follower = Follower(client, request, journal, report, limits)
    return Watch(run, follower, journal, timeout, events, strict=strict)


class Watch:
    """A watched training run, which `prescore.watch` returns. Safe to share between threads."""

    def __init__(
        self,
        run: str,
        follower: Follower,
        journal: Journal,
        timeout: float,
        events: EventWriter | None,
        *,
        strict: bool,
    ) -> None:
        self._run = run
        self._follower = follower
        self._events = events
        self._journal = journal
        self._timeout = timeout
        self._strict = strict

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def checkpoint(self, path: str | Path, *, step: int, remove: bool = False) -> None:
        """Evaluate a checkpoint's file; returns at once. The file must not change until it is sent.

        With `remove`, the file is deleted after it was sent or left out.
        """
        self._raise()
        self._follower.put(step, Path(path), remove=remove)
        self._raise()

    def should_stop(self, metric: str = "cider_d", patience: int = 3) -> bool:
        """Check that the last `patience` checkpoints are no improvement on the best before them.

        An improvement is a score outside the interval of the best score before it. Where a score
        is still being computed, its forecast counts if its whole interval is no better.
        """
        self._raise()
        results = self.results()
        if (without := find_without(results, metric)) is not None:
            known = ", ".join(without.scores) or "no scores"
            self._journal.warn(f"should_stop: {metric} is not among the scores: {known}", metric)
        return has_plateaued(results, metric, patience)

    def should_stop_in(
        self,
        sweep: Mapping[str, str],
        metric: str = "cider_d",
        *,
        at: float | None = None,
        steps: int | None = None,
        sure: float | None = None,
    ) -> bool:
        """Check that the best run of a sweep, the runs with these labels, is among the others, so
        that this one can be stopped; the arguments are those of `Client.rank`.

        This waits for the service's answer. False while the evidence is too thin, of which the
        first reason is logged, and where there is no answer. Label a run that stops `stopped`, so
        that it does not count as a past training.
        """
        self._raise()
        ranking = self._follower.rank(sweep, metric, at=at, steps=steps, sure=sure)
        self._raise()
        if ranking is None:
            return False
        if ranking.not_yet is not None:
            self._journal.warn(f"should_stop_in: {ranking.sentence()}", "not yet")
        return self._run in ranking.stopped

    def results(self) -> list[Result]:
        """The results of all checkpoints so far, in the order of their steps."""
        return self._journal.results()

    @property
    def latest(self) -> Result | None:
        """The last step's result among those with a score or a forecast."""
        return next((one for one in reversed(self.results()) if one.numbers), None)

    def best(self, metric: str) -> Result | None:
        """The result with the best score of `metric`; None while no result has it."""
        return find_best(self.results(), metric)

    def close(self) -> None:
        """Wait for the evaluations under way, as the end of the `with` does."""
        self._end(self._timeout)
        self._raise()

    def abandon(self) -> None:
        """End without waiting; submitted evaluations go on in the service."""
        self._end(0)

    def _end(self, timeout: float) -> None:
        try:
            self._follower.end(timeout)
        finally:
            if self._events is not None:
                self._events.close()

    def _raise(self) -> None:
        error = self._journal.taken_error() if self._strict else None
        if error is not None:
            raise error


def _combine_reports(on_scores: OnScores, events: EventWriter | None) -> OnScores:
    if events is None:
        return on_scores

    def report(step: int, numbers: dict[str, float]) -> None:
        try:
            events.write(step, numbers)
        finally:
            on_scores(step, numbers)

    return report


def _ignore_scores(step: int, numbers: dict[str, float]) -> None:
    pass
