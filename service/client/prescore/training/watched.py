"""Results of a training run's checkpoints, the best of them, and when to stop. Pure functions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

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
        found = None if self.evaluation is None else self.evaluation.forecast
        if found is None or isinstance(found, NoForecast):
            return {}
        return {
            name: ForecastRange(one.value, *one.interval)
            for name, one in found.items()
            if one.value is not None and one.interval is not None
        }

    @property
    def numbers(self) -> dict[str, float]:
        """Scores and forecasts for a logger; a forecast's name is `forecast/cider_d`."""
        values = {name: score.value for name, score in self.scores.items()}
        forecasts = {f"forecast/{name}": one.value for name, one in self.forecast.items()}
        scores = {name: value for name, value in values.items() if value is not None}
        return {**scores, **forecasts}


def best(results: Iterable[Result], metric: str) -> Result | None:
    """The result with the best score; of equal scores the earliest."""
    scored = [(result, _score(result, metric)) for result in results]
    known = [(result, score) for result, score in scored if score is not None]
    if not known:
        return None
    sign = 1 if _higher_is_better(metric, known[0][1]) else -1
    return max(known, key=lambda each: sign * _value(each[1]))[0]


def has_plateaued(results: Iterable[Result], metric: str, patience: int) -> bool:
    """Whether the last `patience` results, in their order, are no improvement.

    A score is an improvement if it lies outside the interval of the last improvement; a smaller
    gain may come from the choice of images. A forecast is never an improvement: it counts as none
    if its whole interval is no better than the best score, else it is ignored.
    """
    if patience < 1:
        raise InvalidArgument(f"patience: expected at least 1 checkpoint, found {patience}")
    leader: Score | None = None
    since = 0
    for result in results:
        score = _score(result, metric)
        if score is None:
            since += leader is not None and _is_hopeless(result.forecast.get(metric), leader)
        elif leader is None or _is_beyond(score, leader, metric):
            leader, since = score, 0
        else:
            since += 1
    return since >= patience


def lacking(results: Iterable[Result], metric: str) -> Result | None:
    """A result that succeeded without the metric, which was not requested or is misspelt."""
    ended = (one for one in results if one.evaluation and one.evaluation.status == "succeeded")
    return next((one for one in ended if metric not in one.scores), None)


def _score(result: Result, metric: str) -> Score | None:
    score = result.scores.get(metric)
    return None if score is None or score.value is None else score


def _value(score: Score) -> float:
    assert score.value is not None
    return score.value


def _higher_is_better(metric: str, score: Score) -> bool:
    if score.higher_is_better is None:
        raise InvalidArgument(f"{metric}: expected a metric of which higher, or lower, is better")
    return score.higher_is_better


def _is_beyond(score: Score, leader: Score, metric: str) -> bool:
    low, high = leader.interval or (_value(leader), _value(leader))
    return _value(score) > high if _higher_is_better(metric, leader) else _value(score) < low


def _is_hopeless(forecast: ForecastRange | None, leader: Score) -> bool:
    if forecast is None:
        return False
    if leader.higher_is_better:
        return forecast.high <= _value(leader)
    return forecast.low >= _value(leader)
