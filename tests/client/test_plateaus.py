"""When a training run gets no better: scores with intervals, and forecasts where those are late."""

from pathlib import Path

import pytest

import prescore
from client.scripted_service import score
from prescore.models import Evaluation
from prescore.training.results import find_best, has_plateaued

NO_FORECAST = {"none_because": "3 finished evaluations; at least 8 are needed", "metrics": {}}


def _result(step, *, forecast=None, status="running", **scores):
    fields = {
        "id": f"ev_{step}",
        "status": status,
        "dataset": {"name": "shapes"},
        "scores": scores,
        "forecast": forecast,
    }
    return prescore.Result(step, Path("x"), Evaluation.model_validate(fields))


def _run(*values, half=0.02, **more):
    """Scores of cider_d, each with an interval; a mapping is a forecast without a score."""
    return [
        _result(step, forecast=value)
        if isinstance(value, dict) or value is None
        else _result(step, cider_d=score(value, interval=[value - half, value + half], **more))
        for step, value in enumerate(values)
    ]


def _forecast(low, high):
    return {"cider_d": {"value": (low + high) / 2, "interval": [low, high], "none_because": None}}


@pytest.mark.parametrize(
    ("values", "patience", "stops"),
    [
        ((), 1, False),
        ((0.4,), 1, False),
        ((0.4, 0.5, 0.6), 1, False),
        ((0.4, 0.39), 1, True),
        ((0.4, 0.39), 2, False),
        ((0.4, 0.41, 0.415, 0.419), 3, True),  # within the interval of the first: no improvement
        ((0.4, 0.41, 0.421, 0.42), 2, False),  # small ones add up
        ((0.4, 0.3, 0.5, 0.5), 2, False),
        ((0.4, 0.3, 0.5, 0.5, 0.51), 2, True),
        ((0.4, 0.3, _forecast(0.2, 0.4)), 2, True),  # no better in its whole interval
        ((0.4, 0.3, _forecast(0.2, 0.41)), 2, False),
        ((0.4, _forecast(0.5, 0.6), 0.3), 2, False),  # promises no improvement, and no stop
        ((_forecast(0.4, 0.5), _forecast(0.1, 0.2), _forecast(0.1, 0.2)), 1, False),
        ((0.4, 0.3, NO_FORECAST), 2, False),
        ((0.4, 0.3, None), 2, False),
        ((0.4, 0.3, {"cider_d": {"value": None, "interval": None, "none_because": "…"}}), 2, False),
        ((0.4, 0.3, {"bleu_4": {"value": 0.1, "interval": [0, 0.2]}}), 2, False),
        ((0.4, 0.3, {"a_thing_of_next_year": [1]}), 2, False),
    ],
)
def test_no_improvement_is_what_lies_within_the_interval_of_the_best(values, patience, stops):
    assert has_plateaued(_run(*values), "cider_d", patience) is stops


def test_of_some_metrics_less_is_better():
    falling = [0.6, 0.5, 0.4]
    assert not has_plateaued(_run(*falling, higher_is_better=False), "cider_d", 1)
    rising = _run(*reversed(falling), higher_is_better=False)
    assert has_plateaued(rising, "cider_d", 2)
    late = [*_run(0.4, 0.6, higher_is_better=False), _result(2, forecast=_forecast(0.4, 0.5))]
    assert has_plateaued(late, "cider_d", 2)
    late[2] = _result(2, forecast=_forecast(0.39, 0.5))
    assert not has_plateaued(late, "cider_d", 2)


def test_without_an_interval_any_better_score_is_an_improvement():
    results = [_result(step, cider_d=score(value)) for step, value in enumerate((0.4, 0.401, 0.4))]
    assert not has_plateaued(results, "cider_d", 2)
    assert has_plateaued(results, "cider_d", 1)


def test_an_infinite_score_says_nothing():
    results = [*_run(0.4, 0.3), _result(2, cider_d=score(None))]
    assert not has_plateaued(results, "cider_d", 2)


def test_patience_of_no_checkpoint_is_refused():
    with pytest.raises(prescore.InvalidArgument, match="at least 1 checkpoint, found 0"):
        has_plateaued([], "cider_d", 0)


@pytest.mark.parametrize(("higher", "step"), [(True, 1), (False, 0)])
def test_the_best_is_the_earliest_of_the_best(higher, step):
    results = _run(0.4, 0.6, 0.5, 0.6, None, higher_is_better=higher)
    assert find_best(results, "cider_d").step == step
    assert find_best(results, "meteor") is None


def test_a_metric_without_a_better_side_has_no_best():
    with pytest.raises(prescore.InvalidArgument, match="length: expected a metric of which"):
        find_best([_result(0, length=score(9.5, higher_is_better=None))], "length")


def test_numbers_are_for_a_logger():
    result = _result(1, cider_d=score(0.4), spice=score(None), forecast=_forecast(0.25, 0.75))
    assert result.numbers == {"cider_d": 0.4, "forecast/cider_d": 0.5}
    assert _result(1, forecast=NO_FORECAST).numbers == {}
    assert prescore.Result(1, Path("x")).numbers == {}
