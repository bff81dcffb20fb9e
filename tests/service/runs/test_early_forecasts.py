"""Forecasts of final scores, and odds. Oracles: numpy's least squares, one training after the other
left out; Student's t of scipy; all subsets. Simulations know which run is the best.
"""

import math
import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from service.runs import early_forecasts
from service.runs.early_forecasts import (
    EarlyForecast,
    EndedTraining,
    RunOutlook,
    choose_forecast,
    keep_best,
)
from service.runs.signal_noise import FinalOrder


def _past(seed, groups, seeds=1, correlations=(0.9, 0.85, 0.8)):
    rng = random.Random(seed)
    return [
        training for group in range(groups) for training in _group(rng, group, seeds, correlations)
    ]


def _group(rng, group, seeds, correlations):
    for _ in range(seeds):
        final = 3 + rng.gauss()
        early = {
            f"m{at}": 50 * at + 7 * (r * final + math.sqrt(1 - r * r) * rng.gauss())
            for at, r in enumerate(correlations)
        }
        yield EndedTraining(f"g{group}", final, early)


def _errors(past, metric, left, rest):
    x, y = ([one.early[metric] for one in rest], [one.final for one in rest])
    slope, start = np.polyfit(x, y, 1)
    return [one.final - start - slope * one.early[metric] for one in left]


def _oracle_choice(past, metrics):
    """The metric with the smallest errors of groups that are left out one by one."""

    def measure(metric):
        errors = []
        for group in {one.group for one in past}:
            left = [one for one in past if one.group == group]
            errors += _errors(past, metric, left, [one for one in past if one.group != group])
        return sum(error**2 for error in errors)

    return min(metrics, key=measure)


@pytest.mark.parametrize(("groups", "seeds"), [(12, 1), (5, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_a_forecast_and_its_error_are_those_of_trainings_left_out(groups, seeds, seed):
    past = _past(seed, groups, seeds)
    metrics = ["m0", "m1", "m2"]
    found = choose_forecast(past, metrics)
    assert found.metric == _oracle_choice(past, metrics)
    squares = []
    for group in {one.group for one in past}:
        rest = [one for one in past if one.group != group]
        chosen = _oracle_choice(rest, metrics)
        left = [one for one in past if one.group == group]
        squares += [error**2 for error in _errors(past, chosen, left, rest)]
    assert found.error == pytest.approx(math.sqrt(np.mean(squares)))
    x, y = [one.early[found.metric] for one in past], [one.final for one in past]
    slope, start = np.polyfit(x, y, 1)
    assert found.slope == pytest.approx(slope)
    assert found.expect(x[1] + 0.1).value == pytest.approx(start + (x[1] + 0.1) * slope)
    assert found.spread == pytest.approx(np.var(x) * groups)
    assert found.freedom == groups - 2


def test_the_choice_is_counted_as_an_error():
    """Of forty metrics that tell nothing, the best one seems to tell something."""
    naive, honest = [], []
    for seed in range(20):
        past = _past(seed, 10, correlations=[0] * 40)
        metrics = list(past[0].early)
        chosen = choose_forecast(past, metrics)
        honest.append(chosen.error)
        naive.append(choose_forecast(past, [chosen.metric]).error)
    assert np.mean(naive) < 0.9
    assert np.mean(honest) > 1


FORECAST = EarlyForecast(
    "m", 8, early=2.0, final=5.0, slope=1.5, spread=4.0, error=0.7, lowest=1.0, highest=3.0
)


def test_odds_are_those_of_students_t():
    """The line's slope is common to two runs; its height counts beside one that has ended."""
    for spread in (4.0, 0.1):
        forecast = replace(FORECAST, spread=spread)
        scale = 0.7 * math.sqrt(2 + 0.8**2 / spread)
        better = stats.t.cdf(1.5 * 0.8 / scale, 6)
        odds = forecast.compute_odds([2.1, 2.9], None)
        assert odds == pytest.approx([1 - better, better], abs=0.012)
    for groups in (3, 8):
        forecast = replace(FORECAST, groups=groups)
        scale = 0.7 * math.sqrt(1 + 1 / groups)
        alone = stats.t.cdf((5 - 6) / scale, groups - 2)
        assert forecast.compute_odds([2.0], 6.0) == pytest.approx([alone], abs=0.012)


def test_intervals_are_those_of_students_t():
    reach = stats.t.ppf(0.975, 6) * 0.7 * math.sqrt(1 + 1 / 8 + 0.9**2 / 4)
    value, low, high = FORECAST.expect(2.9)
    assert (value, high - value, value - low) == pytest.approx((6.35, reach, reach), rel=0.01)


def test_equal_early_scores_tell_nothing():
    past = [one._replace(early={"m": 4.0}) for one in _past(1, 9)]
    found = choose_forecast(past, ["m"])
    finals = [one.final for one in past]
    assert (found.slope, found.spread) == (0, 0)
    assert found.error == pytest.approx(np.std(finals) * 9 / 8)
    assert found.compute_odds([4.0] * 4, None) == pytest.approx([0.25] * 4, abs=0.02)


def test_scores_of_any_size_have_the_same_odds():
    past = _past(3, 10)
    large = [
        EndedTraining(one.group, 1e6 + one.final / 1e3, {n: 1e7 + x for n, x in one.early.items()})
        for one in past
    ]
    one, other = (choose_forecast(each, ["m0", "m1"]) for each in (past, large))
    assert one.metric == other.metric
    runs = [20.0, 25.0, 30.0]
    shifted = other.compute_odds([1e7 + x for x in runs], None)
    assert one.compute_odds(runs, None) == pytest.approx(shifted, abs=1e-3)


def test_a_line_is_not_continued_far_beyond_past_trainings():
    past = [
        EndedTraining(str(at), 2.0 * early, {"m": early}) for at, early in enumerate(range(10, 19))
    ]
    found = choose_forecast(past, ["m"])
    assert [found.covers(early) for early in (7.9, 8.1, 19.9, 20.1)] == [False, True, True, False]
    assert [found.expect(early).value for early in (8.0, -50, 25, 16)] == pytest.approx(
        [16, 16, 40, 32]
    )
    assert found.compute_odds([-50, 8.0], None) == found.compute_odds([8.0, 8.0], None)


@pytest.mark.parametrize("sure", [0.5, 0.9, 0.95, 0.999])
def test_the_fewest_trainings_are_kept_and_half_at_least(sure):
    rng = random.Random(4)
    for many in (1, 2, 5, 6):
        weights = [rng.random() ** 4 for _ in range(many)]
        odds = [one / sum(weights) for one in weights]
        kept, probability = keep_best([RunOutlook(one, one) for one in odds], sure)
        fewest = min(
            size
            for size in range((many + 1) // 2, many + 1)
            for some in combinations(odds, size)
            if sum(some) >= sure - 1e-9
        )
        assert len(kept) == fewest
        assert probability == pytest.approx(sum(odds[at] for at in kept))
        assert sorted(odds, reverse=True)[:fewest] == [odds[at] for at in kept]


def test_trainings_that_have_ended_are_kept_anyway():
    one, other = RunOutlook(0.01, 1), RunOutlook(0.01, 2)
    assert keep_best([RunOutlook(0.1, 1), one], 0.95, ended=2) == ([0], pytest.approx(0.99))
    assert keep_best([one, other], 0.95, ended=2) == ([], pytest.approx(0.98))
    assert keep_best([one, other, other], 0.95, ended=1) == ([1], pytest.approx(0.98))


def test_trainings_that_began_like_no_past_one_are_kept():
    runs = [RunOutlook(0.6, 3), RunOutlook(0.38, 2), RunOutlook(0.02, 1), RunOutlook(0, 0, False)]
    assert sorted(keep_best(runs, 0.95)[0]) == [0, 1, 3]
    assert keep_best([run._replace(is_covered=False) for run in runs], 0.5)[0] == [0, 1, 2, 3]


# correlations of early with final scores; of a recipe's own: offset, slope; distance of the sweep
GOOD, MIDDLE, WEAK, USELESS = (
    *((0.95, 0.9, 0.8, 0.5, 0.5, 0.3, 0.3, 0), (0.7, 0.7, 0.6, 0.5, 0.5, 0.3, 0.3, 0)),
    *((0.3,) * 4 + (0.1,) * 4, (0,) * 8),
)
CELLS = {
    "good": (20, 1, GOOD, 0, 0, 0),
    "good, seeds": (8, 3, GOOD, 0, 0, 0),
    "middling": (20, 1, MIDDLE, 0, 0, 0),
    "weak": (20, 1, WEAK, 0, 0, 0),
    "useless": (20, 1, USELESS, 0, 0, 0),
    "few, good": (8, 1, GOOD, 0, 0, 0),
    "few, middling": (8, 1, MIDDLE, 0, 0, 0),
    "few, weak": (8, 1, WEAK, 0, 0, 0),
    "few, useless": (8, 1, USELESS, 0, 0, 0),
    "recipes differ": (6, 4, GOOD, 0.5, 0, 0),
    "recipes differ much": (6, 4, GOOD, 1, 0, 0),
    "recipes bend, sweep is far": (10, 2, GOOD, 0.2, 0.2, 2),
}
THIN = {"weak", "useless", "few, middling", "few, weak", "few, useless"}  # they stop by luck
SWEEPS, RUNS = 500, 8


def _recipe(rng, cell):
    _, seeds, correlations, offset, bend, _ = cell
    mean = 0.5 * rng.gauss() if seeds > 1 else 0.0
    return mean, math.exp(bend * rng.gauss()), [offset * rng.gauss() for _ in correlations]


def _simulate_training(rng, cell, recipe, group="", far=0.0):
    mean, bend, offsets = recipe
    final = mean + far + rng.gauss()
    noises = [math.sqrt(1 / r**2 - 1) if r else 1.0 for r in cell[2]]
    early = {
        f"m{at}": (bend * final + offset if r else 0.0) + noise * rng.gauss()
        for at, (r, noise, offset) in enumerate(zip(cell[2], noises, offsets, strict=True))
    }
    return EndedTraining(group, final, early)


def _decide(past, sweep):
    """The runs that are kept, as `sweep_rankings` decides; None for not yet."""
    found = choose_forecast(past, list(past[0].early))
    order = FinalOrder.of([one.final for one in past], lambda *_: True)
    accuracy, interval, _ = order.measure_accuracy([one.early[found.metric] for one in past])
    if (accuracy if interval is None else interval[0]) <= 0.5:
        return None
    early = [one.early[found.metric] for one in sweep]
    runs = [
        RunOutlook(odds, found.expect(each).value, found.covers(each))
        for odds, each in zip(found.compute_odds(early, None), early, strict=True)
    ]
    kept, _ = keep_best(runs, 0.95)
    return kept if len(kept) < len(sweep) else None


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_the_best_run_is_kept_as_often_as_it_says(name, monkeypatch, capsys):
    monkeypatch.setattr(early_forecasts, "_DRAWS", 2000)
    cell = CELLS[name]
    groups, seeds, *_, far = cell
    rng = random.Random(1)
    held, stopped = [], 0
    for _ in range(SWEEPS):
        recipes = {str(group): _recipe(rng, cell) for group in range(groups)}
        past = [
            _simulate_training(rng, cell, recipe, group)
            for group, recipe in recipes.items()
            for _ in range(seeds)
        ]
        sweep = [_simulate_training(rng, cell, _recipe(rng, cell), far=far) for _ in range(RUNS)]
        kept = _decide(past, sweep)
        if kept is not None:
            held.append(max(range(RUNS), key=lambda at: sweep[at].final) in kept)
            stopped += RUNS - len(kept)
    lost = held.count(False) / SWEEPS
    share, part = len(held) / SWEEPS, stopped / max(1, len(held)) / RUNS
    with capsys.disabled():
        print(f"\n{name}: {share:.0%}, {part:.0%}, {np.mean(held):.3f}, {lost:.3f}")
    assert lost <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / SWEEPS)
    if name not in THIN:
        assert np.mean(held) >= 0.95 - 2 * math.sqrt(0.05 * 0.95 / len(held))
