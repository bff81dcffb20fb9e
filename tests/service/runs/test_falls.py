"""The rule of falls: two trainings of the lab, cases by hand, and trainings that are made up."""

import math

import pytest

from parity.falls import Sweep, count_false_alarms, measure_detection
from service.runs.falls import find_falls
from service.runs.signal_noise import StepScore

# CIDEr-D of two trainings on shapes; the fifth checkpoint of the second is broken.
GOOD = (0, 0.2, 2.1, 3.2, 4.1, 4.37)
BROKEN = (0, 0.2, 2.07, 3.18, 3.34, 4.34)
ERROR = 0.0975


def _training(values, error=ERROR, steps=None):
    return {
        float(step): StepScore(value, value - 1.96 * error, value + 1.96 * error)
        for step, value in zip(steps or range(1, len(values) + 1), values, strict=True)
    }


def _kinds(values, others=(), **options):
    beside = {str(at): _training(one) for at, one in enumerate(others)}
    return [(one.kind, one.step) for one in find_falls(_training(values, **options), beside)]


def test_a_checkpoint_that_gained_less_than_another_training_is_flagged_at_once():
    (fall,) = find_falls(_training(BROKEN[:5]), {"merge-64": _training(GOOD)})
    assert (fall.kind, fall.step, fall.value, fall.beside) == ("run", 5, 3.34, "merge-64")
    assert fall.expected == pytest.approx(3.18 + 4.1 - 3.2)
    assert fall.difference == pytest.approx(3.34 - 4.1)
    reach = 1.96 * ERROR * math.sqrt(2)
    assert fall.interval == pytest.approx((-0.76 - reach, -0.76 + reach), abs=1e-4)


def test_with_the_next_checkpoint_it_is_below_its_own_line_too():
    trend, run = find_falls(_training(BROKEN), {"merge-64": _training(GOOD)})
    assert (trend.kind, trend.step, run.kind, run.step) == ("trend", 5, "run", 5)
    assert trend.expected == pytest.approx((3.18 + 4.34) / 2)
    assert trend.difference == pytest.approx(3.34 - 3.76)
    reach = 1.96 * ERROR * math.sqrt(1.5)
    assert trend.interval == pytest.approx((-0.42 - reach, -0.42 + reach), abs=1e-4)
    assert _kinds(BROKEN) == [("trend", 5)]


def test_the_training_that_did_not_fall_is_not_flagged():
    assert _kinds(GOOD, [BROKEN]) == []
    assert _kinds(GOOD, [GOOD]) == []


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ((1, 2, 3, 2.5), {}, [("step", 4)]),
        ((1, 2, 3, 2.7), {}, []),  # three standard errors of the difference are .41
        ((1, 2, 3, 2.95), {"error": 0.001}, []),  # less than a twentieth of the way
        ((1, 2, 3, 2.85), {"error": 0.001}, [("step", 4)]),
        ((0, 0.5, 0.6, 3, 4), {"error": 0.01}, []),  # before half of the way
        (
            (0, 2.5, 2.52, 2.55, 3.4, 3.45),
            {"error": 0.01},
            [],
        ),  # a plateau, and a new learning rate
        ((0, 2, 3, 3.05, 4), {"error": 0.01}, [("trend", 4)]),
        (
            (0, 2, 3, 3.2, 4),
            {"error": 0.01, "steps": (1, 2, 3, 4, 9)},
            [],
        ),  # above a line over steps
        ((3, 2, 1), {"error": 0.01}, [("step", 2), ("step", 3)]),
        ((3,), {}, []),
        ((), {}, []),
    ],
)
def test_falls_of_one_training(values, options, expected):
    assert _kinds(values, **options) == expected


def test_scores_that_jump_anyway_need_a_larger_fall():
    """Jumps of .3 up and down, past half of the way."""
    jumping = (0, 3, 3.3, 3, 3.3, 3, 3.3, 3, 3.3)
    assert _kinds(jumping, error=0.01) == []
    assert _kinds((*jumping, 1.5), error=0.01) == [("step", 10)]


@pytest.mark.parametrize(
    ("values", "others", "expected"),
    [
        ((0, 2, 3, 3.2), [(0, 2, 3, 4)], [("run", 4)]),
        ((0, 3.2, 4.0, 4.1), [(0, 2, 3, 4)], []),  # it gained less, and is above
        ((0, 1, 2, 2.2), [(0, 2.6, 3, 4)], []),  # the two differed before
        ((0, 0.1, 0.2, 0.3), [(0, 0.1, 0.2, 3)], []),  # before half of the other's way
        ((0, 2, 3, 3.2), [(0, 2, 3, 4)] * 3, [("run", 4)]),
        ((0, 2, 3, 3.2), [(0, 2, 3, 4), (0, 2, 3, 3.2), (0, 2, 3, 5)], []),  # others differ as much
        ((0, 2, 3, 3.2), [(0, 2, 3)], []),
    ],
)
def test_falls_beside_other_trainings(values, others, expected):
    assert _kinds(values, others) == expected


def test_a_training_that_has_not_come_as_far_hides_no_fall():
    stuck = (0, 0.66, 0.82, 0.86, 0.76, 0.71)
    assert ("run", 5) in _kinds(BROKEN, [GOOD, stuck])
    assert _kinds(GOOD, [BROKEN, stuck]) == []
    assert _kinds(stuck, [GOOD, BROKEN]) == []


def test_the_nearest_training_is_the_one_beside():
    near, far = (0, 2, 3, 4), (0, 2.4, 3.4, 4.4)
    beside = {"far": _training(far), "near": _training(near)}
    (fall,) = find_falls(_training((0, 2, 3.05, 3.1)), beside)
    assert fall.beside == "near"
    assert fall.difference == pytest.approx(3.1 - 4)


def test_a_training_that_is_not_surely_below_the_other_is_not_flagged():
    other = _training((0, 2, 3, 4), 0.005)
    assert find_falls(_training((0.2, 2.2, 3.2, 3.99), 0.005), {"a": other}) == []
    (fall,) = find_falls(_training((0.2, 2.2, 3.2, 3.9), 0.005), {"a": other})
    assert fall.difference == pytest.approx(-0.1)


def test_another_training_that_fell_too_is_not_the_one_beside():
    beside = {"fallen": _training((0, 2, 3, 3.1)), "a": _training((0, 2, 3.1, 4.1))}
    beside["b"] = _training((0, 2, 3.2, 4.2))
    (fall,) = find_falls(_training((0, 2, 3, 3)), beside)
    assert fall.beside == "a"


def test_scores_without_intervals_are_left_out():
    own = _training((0, 2, 3, 1)) | {4.0: StepScore(1.0)}
    assert find_falls(own, {}) == []


@pytest.mark.parametrize("shape", ["exponential", "power", "sigmoid"])
@pytest.mark.parametrize("others", [0, 1, 5])
def test_honest_trainings_are_hardly_ever_flagged(shape, others):
    """Less than 1 of 300 checkpoints, at any time."""
    found = count_false_alarms(Sweep(shape, 0.01, 0.0, others), seed=others, trainings=60)
    assert found["checkpoints"] > 600
    assert found["any"] < found["checkpoints"] / 300


def test_large_losses_are_found_more_often_than_small_ones():
    sweep = Sweep("exponential", 0.01, 0.0, 1)
    at_once, found = zip(
        *(measure_detection(sweep, loss, 1, trainings=60) for loss in (0.0, 0.1, 0.3)), strict=True
    )
    assert found[0] == 0
    assert found[1] > 0.75
    assert found[2] > 0.95
    assert all(now <= later for now, later in zip(at_once, found, strict=True))
