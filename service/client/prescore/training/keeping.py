"""Keeps the file of the best checkpoint of a training run."""

import logging
import shutil
from pathlib import Path

from prescore import plain_text
from prescore.errors import InvalidArgument, PrescoreClientError
from prescore.training.watched import Result
from prescore.training.watching import Watch

NAME = "best.safetensors"

_log = logging.getLogger("prescore")


class Best:
    """A copy of the best checkpoint so far at `place`, a file or a folder, by a metric's direction.

    The run's files are deleted as soon as they are known not to be the best.
    """

    def __init__(self, place: str | Path, metric: str) -> None:
        found = Path(place)
        self.path = found if found.suffix and not found.is_dir() else found / NAME
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
            self._update(watch)
        except (OSError, PrescoreClientError) as error:
            if not self._has_failed:
                _log.warning("keep_best: %s", plain_text.line(str(error)))
            self._has_failed = True

    def _update(self, watch: Watch) -> None:
        best = watch.best(self._metric)
        if best is not None and best.step != self._step and best.path.exists():
            shutil.copyfile(best.path, self._partial)
            self._partial.replace(self.path)
            self._step = best.step
        for result in watch.results():
            if self._is_over(result) and (best is None or result.step != best.step):
                result.path.unlink(missing_ok=True)

    @property
    def _partial(self) -> Path:
        return self.path.with_name(f"{self.path.name}.partial")

    def _is_over(self, result: Result) -> bool:
        """Whether the result has the metric's score, or will never have it."""
        ended = result.evaluation is not None and result.evaluation.ended
        return ended or result.problem is not None or self._metric in result.scores
