"""Histories drawn from a known relation of hits and a metric, and a new run of that relation."""

from collections.abc import Callable, Iterator

import numpy as np

from helpers.histories import evaluation
from parity import forecasts

RUN_SD, NOISE = 0.02, 0.004
LUCK = 1.96 * np.hypot(RUN_SD, NOISE)  # half an interval, if the relation were known
FROM, TO = 0.2, 0.5  # hits of the history
SIZES = {2: 8, 3: 6, 5: 5, 12: 2, 20: 1}  # evaluations a run, by runs
CURVES: dict[str, Callable[[float], float]] = {
    "a line": lambda hits: hits,
    "flattens": lambda hits: 0.5 * (1 - np.exp(-6 * (hits - 0.1))),
    "steepens": lambda hits: 4 * hits**3,
    "first steepens, then flattens": lambda hits: 1 / (1 + np.exp(-12 * (hits - 0.45))),
}


def ask_within(runs: int, histories: int) -> list[forecasts.Answered]:
    """New runs in the range of histories whose relation is a line."""
    return list(_ask("a line", runs, SIZES[runs], (FROM, TO), histories))


def ask_beyond(curve: str, histories: int) -> list[forecasts.Answered]:
    """New runs beyond histories of eight runs."""
    return list(_ask(curve, 8, 8, (TO, TO + 0.05), histories))


def _ask(
    curve: str, runs: int, each: int, span: tuple[float, float], histories: int
) -> Iterator[forecasts.Answered]:
    for seed in range(histories):
        rng = np.random.default_rng(seed)
        history = [one for run in range(runs) for one in _train(rng, curve, run, (FROM, TO), each)]
        (new,) = _train(rng, curve, "new", span, 1)
        yield forecasts.ask_of(history, new, "cider_d")


def _train(rng, curve, run, span, each):
    effect = rng.normal(scale=RUN_SD)
    for hits in rng.uniform(*span, each):
        value = CURVES[curve](hits) + effect + rng.normal(scale=NOISE)
        yield evaluation(run, float(hits), {"cider_d": float(value)})
