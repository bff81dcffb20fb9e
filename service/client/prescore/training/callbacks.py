"""Parts that the callbacks of trainers share: they export and send a checkpoint, hand its scores to
the thread of the training, and keep the best file.
"""

import logging
import queue
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from prescore import plain_text
from prescore.errors import InvalidArgument, PrescoreClientError
from prescore.training.results import Result
from prescore.training.watch import Watch, watch

BEST_NAME = "best.safetensors"
BEST_METRIC = "cider_d"

Export = Callable[[Any, Path], object]
StepNumbers = tuple[int, dict[str, float]]
_log = logging.getLogger("prescore")


def name_for_loggers(numbers: Mapping[str, float]) -> dict[str, float]:
    return {f"prescore/{name}": value for name, value in numbers.items()}


class BestCheckpointFile:
    """A copy of the best checkpoint so far at `place`, a file or a folder, by a metric's direction.

    The run's files are deleted as soon as they are known not to be the best.
    """

    def __init__(self, place: str | Path, metric: str) -> None:
        path = Path(place)
        self.path = path if path.suffix and not path.is_dir() else path / BEST_NAME
        self._metric = metric
        self._step: int | None = None
        self._has_failed = False

    def begin(self) -> None:
        """Raise at once where the file cannot be written, not after the first epoch."""
        self._step = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._partial.touch()
            self._partial.unlink()
        except OSError as error:
            raise InvalidArgument(
                f"keep_best: {self.path} cannot be written: {error.strerror}"
            ) from None

    def update(self, watch: Watch) -> None:
        """A failure is logged once, and the training goes on."""
        try:
            self._copy_best(watch)
        except (OSError, PrescoreClientError) as error:
            if not self._has_failed:
                _log.warning("keep_best: %s", plain_text.line(str(error)))
            self._has_failed = True

    def _copy_best(self, watch: Watch) -> None:
        best = watch.best(self._metric)
        if best is not None and best.step != self._step and best.path.exists():
            shutil.copyfile(best.path, self._partial)
            self._partial.replace(self.path)
            self._step = best.step
        for result in watch.results():
            if self._is_settled(result) and (best is None or result.step != best.step):
                result.path.unlink(missing_ok=True)

    @property
    def _partial(self) -> Path:
        return self.path.with_name(f"{self.path.name}.partial")

    def _is_settled(self, result: Result) -> bool:
        """True where the result has the metric's score, or will never have it."""
        ended = result.evaluation is not None and result.evaluation.ended
        return ended or result.problem is not None or self._metric in result.scores


class CheckpointExporter:
    """A watch whose checkpoints `export(model, path)` writes; a file is deleted after sending.

    `watched` has the arguments of `prescore.watch`. With `keep_best`, a place, the best checkpoint
    by `keep_on`, else by `stop_on`, is kept there. With `stop_in`, the labels of a sweep, training
    stops where `Watch.should_stop_in` says so, by `stop_on` or BEST_METRIC.
    """

    def __init__(
        self,
        run: str,
        export: Export,
        stop_on: str | None,
        stop_after: int,
        *,
        keep_best: str | Path | None = None,
        keep_on: str | None = None,
        stop_in: Mapping[str, str] | None = None,
        **watched: Any,
    ) -> None:
        self._run = run
        self._export = export
        self._stop_in = stop_in
        self._stop_on = stop_on
        self._stop_after = stop_after
        metric = keep_on or stop_on or BEST_METRIC
        self._best = None if keep_best is None else BestCheckpointFile(keep_best, metric)
        self._watched = watched
        self._news: queue.SimpleQueue[StepNumbers] = queue.SimpleQueue()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._last_step: int | None = None
        self._scored = 0
        self.watch: Watch | None = None

    def begin(self) -> None:
        self.abandon()
        if self._best is not None:
            self._best.begin()
        news = self._news
        self.watch = watch(
            self._run, on_scores=lambda step, numbers: news.put((step, numbers)), **self._watched
        )
        self._folder = tempfile.TemporaryDirectory(prefix="prescore-")
        self._last_step = None

    def save(self, model: Any, step: int) -> None:
        """Export and send a model, once for each step, though a trainer may save a step twice."""
        if self.watch is None or self._folder is None or step == self._last_step:
            return
        self._last_step = step
        path = Path(self._folder.name) / f"step-{step}.safetensors"
        self._export(model, path)
        self.watch.checkpoint(path, step=step, remove=self._best is None)

    def take_news(self) -> Iterator[StepNumbers]:
        """Give each step's new numbers once."""
        news = []
        while not self._news.empty():
            news.append(self._news.get())
        if news:
            self._update_best()
        yield from news

    def _update_best(self) -> None:
        if self._best is not None and self.watch is not None and self._folder is not None:
            self._best.update(self.watch)

    def should_stop(self) -> bool:
        if self.watch is None:
            return False
        if self._stop_on and self.watch.should_stop(self._stop_on, self._stop_after):
            return True
        return self._stop_in is not None and self._may_give_up(self.watch, self._stop_in)

    def _may_give_up(self, watch: Watch, sweep: Mapping[str, str]) -> bool:
        """Ask whether the run can be stopped, once for each number of scored checkpoints."""
        scored = sum(bool(result.scores) for result in watch.results())
        is_new, self._scored = scored != self._scored, scored
        return is_new and watch.should_stop_in(sweep, self._stop_on or BEST_METRIC)

    def close(self) -> None:
        """Wait for the evaluations under way; results can still be read."""
        self._end(Watch.close)

    def abandon(self) -> None:
        self._end(Watch.abandon)

    def _end(self, end: Callable[[Watch], None]) -> None:
        if self.watch is None or self._folder is None:
            return
        with self._folder:
            try:
                end(self.watch)
            finally:
                self._update_best()
                self._folder = None
