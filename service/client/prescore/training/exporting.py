"""What the trainers' callbacks share: they export models, and take scores in their own thread."""

import queue
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from prescore.training.keeping import Best
from prescore.training.watching import Watch, watch

Export = Callable[[Any, Path], object]
Told = tuple[int, dict[str, float]]


class Exporting:
    """A watch whose checkpoints `export(model, path)` writes; a file is deleted after sending."""

    def __init__(
        self,
        run: str,
        export: Export,
        stop_on: str | None,
        stop_after: int,
        best: Best | None = None,
        **watched: Any,
    ) -> None:
        self._run = run
        self._export = export
        self._stop_on = stop_on
        self._stop_after = stop_after
        self._best = best
        self._watched = watched
        self._news: queue.SimpleQueue[Told] = queue.SimpleQueue()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._last_step: int | None = None
        self.watch: Watch | None = None

    def begin(self) -> None:
        self.abandon()
        if self._best is not None:
            self._best.begin()
        told = self._news
        self.watch = watch(
            self._run, on_scores=lambda step, numbers: told.put((step, numbers)), **self._watched
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

    def news(self) -> Iterator[Told]:
        found = []
        while not self._news.empty():
            found.append(self._news.get())
        if found:
            self._keep()
        yield from found

    def _keep(self) -> None:
        if self._best is not None and self.watch is not None and self._folder is not None:
            self._best.update(self.watch)

    def should_stop(self) -> bool:
        if self.watch is None or self._stop_on is None:
            return False
        return self.watch.should_stop(self._stop_on, self._stop_after)

    def close(self) -> None:
        """Wait for the evaluations under way; results can still be read."""
        self._end(Watch.close)

    def abandon(self) -> None:
        self._end(Watch.abandon)

    def _end(self, how: Callable[[Watch], None]) -> None:
        if self.watch is None or self._folder is None:
            return
        with self._folder:
            try:
                how(self.watch)
            finally:
                self._keep()
                self._folder = None
