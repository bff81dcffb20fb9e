"""The results of a training run's checkpoints, shared by two threads; each warning logged once."""

import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from prescore import plain_text
from prescore.training.watched import Result

_log = logging.getLogger("prescore")


class Journal:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._results: list[Result] = []
        self._warned: set[str] = set()
        self._error: Exception | None = None

    def add(self, step: int, path: Path) -> int:
        """Add a checkpoint; returns its place, the index that `note` takes."""
        with self._lock:
            self._results.append(Result(step, path))
            return len(self._results) - 1

    def note(self, place: int, **fields: Any) -> tuple[Result, Result]:
        """Change fields of the result at `place`; returns it before and after."""
        with self._lock:
            before = self._results[place]
            self._results[place] = replace(before, **fields)
            return before, self._results[place]

    def results(self) -> list[Result]:
        with self._lock:
            return sorted(self._results, key=lambda result: result.step)

    def fail(self, place: int, error: Exception) -> None:
        _, result = self.note(place, problem=str(error))
        self.trouble(f"step {result.step} is not scored: {error}", error)

    def trouble(self, text: str, error: Exception) -> None:
        with self._lock:
            self._error = self._error or error
        self.warn(text)

    def taken_error(self) -> Exception | None:
        """The first error since the last call, if any."""
        with self._lock:
            error, self._error = self._error, None
        return error

    def warn(self, text: str, once_for: str = "") -> None:
        with self._lock:
            told = (once_for or text) in self._warned
            self._warned.add(once_for or text)
        if not told:
            _log.warning("%s", plain_text.line(text))
