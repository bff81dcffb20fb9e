"""Results of a training run's checkpoints, the best of them, and when to stop. Pure functions."""

import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prescore import plain_text
from prescore.errors import InvalidArgument
from prescore.models import Evaluation, NoForecast, Score


@dataclass(frozen=True)
class ForecastRange:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Result:
    """A checkpoint with its evaluation as last seen; `problem` says why there is none."""

    step: int
    path: Path
    evaluation: Evaluation | None = None
    problem: str | None = None

    @property
    def scores(self) -> Mapping[str, Score]:
        return {} if self.evaluation is None else self.evaluation.scores

    @property
    def forecast(self) -> Mapping[str, ForecastRange]:
        """The forecasts by metric; empty where the service says why there are none."""
        forecast = None if self.evaluation is None else self.evaluation.forecast
        if forecast is None or isinstance(forecast, NoForecast):
            return {}
        return {
            name: ForecastRange(one.value, *one.interval)
            for name, one in forecast.items()
            if one.value is not None and one.interval is not None
        }

    @property
    def numbers(self) -> dict[str, float]:
        """Scores and forecasts for a logger; a forecast's name is `forecast/cider_d`."""
        values = {name: score.value for name, score in self.scores.items()}
        forecasts = {f"forecast/{name}": one.value for name, one in self.forecast.items()}
        scores = {name: value for name, value in values.items() if value is not None}
        return {**scores, **forecasts}


def find_best(results: Iterable[Result], metric: str) -> Result | None:
    """The result with the best score; of equal scores the earliest."""
    scored = [(result, _find_score(result, metric)) for result in results]
    known = [(result, score) for result, score in scored if score is not None]
    if not known:
        return None
    sign = 1 if _higher_is_better(metric, known[0][1]) else -1
    return max(known, key=lambda each: sign * _require_value(each[1]))[0]


def has_plateaued(results: Iterable[Result], metric: str, patience: int) -> bool:
    """Check that the last `patience` results, in their order, are no improvement.

    A score is an improvement if it lies outside the interval of the last improvement; a smaller
    gain may come from the choice of images. A forecast is never an improvement: it counts as none
    if its whole interval is no better than the best score, else it is ignored.
    """
    if patience < 1:
        raise InvalidArgument(f"patience: expected at least 1 checkpoint, found {patience}")
    leader: Score | None = None
    since = 0
    for result in results:
        score = _find_score(result, metric)
        if score is None:
            since += leader is not None and _is_hopeless(result.forecast.get(metric), leader)
        elif leader is None or _is_improvement(score, leader, metric):
            leader, since = score, 0
        else:
            since += 1
    return since >= patience


def find_without(results: Iterable[Result], metric: str) -> Result | None:
    """A result that succeeded without the metric, which was not requested or is misspelt."""
    ended = (one for one in results if one.evaluation and one.evaluation.status == "succeeded")
    return next((one for one in ended if metric not in one.scores), None)


def _find_score(result: Result, metric: str) -> Score | None:
    score = result.scores.get(metric)
    return None if score is None or score.value is None else score


def _require_value(score: Score) -> float:
    assert score.value is not None
    return score.value


def _higher_is_better(metric: str, score: Score) -> bool:
    if score.higher_is_better is None:
        raise InvalidArgument(f"{metric}: expected a metric of which higher, or lower, is better")
    return score.higher_is_better


def _is_improvement(score: Score, leader: Score, metric: str) -> bool:
    low, high = leader.interval or (_require_value(leader), _require_value(leader))
    return (
        _require_value(score) > high
        if _higher_is_better(metric, leader)
        else _require_value(score) < low
    )


def _is_hopeless(forecast: ForecastRange | None, leader: Score) -> bool:
    if forecast is None:
        return False
    if leader.higher_is_better:
        return forecast.high <= _require_value(leader)
    return forecast.low >= _require_value(leader)


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
            is_repeated = (once_for or text) in self._warned
            self._warned.add(once_for or text)
        if not is_repeated:
            _log.warning("%s", plain_text.line(text))
