"""Forecasts of post-gen scores from pre-gen scores, and the ranks that a predictor must share.

Over all evaluations, a predictor reaches a high rho if it only tells early checkpoints from late
ones, or if architectures happen to be in the same order. Within a set (a training run; or one
architecture, if runs have one evaluation each) the predictor has to rank evaluations that differ in
nothing else.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.contract.metrics import catalogue
from service.contract.plan.estimates import PREDICTORS, explain_too_few
from service.contract.results import PastEvaluation
from service.contract.wording import count_noun
from workers.analysis.forecast_validation import (
    FITS,
    Floats,
    Ints,
    LeftOutErrors,
    MetricHistory,
    fit_upper_line,
    leave_better_out,
    leave_one_run_out,
    restore_infinity,
    select_history,
    weigh_runs,
)

_SAME = 1e-12


def correlate_ranks(left: Floats, right: Floats) -> float | None:
    """Spearman's rho; None if one side is constant."""
    return _correlation(_centred_ranks(left), _centred_ranks(right))


def correlate_within_sets(left: Floats, right: Floats, sets: Ints) -> float | None:
    """Spearman's rho with ranks taken within each set; a set of one evaluation says nothing."""
    ranks = [
        (_centred_ranks(left[sets == at]), _centred_ranks(right[sets == at])) for at in set(sets)
    ]
    sides = (np.concatenate([pair[side] for pair in ranks]) for side in (0, 1))
    return _correlation(*sides)


def find_comparable_sets(history: MetricHistory) -> Ints:
    """Sets are runs; they are architectures if most evaluations are the only one of their run."""
    sizes = np.bincount(history.runs)[history.runs]
    return history.architectures if (sizes == 1).mean() > 0.5 else history.runs


def _centred_ranks(values: Floats) -> Floats:
    """Ranks as shares of their set, so that large sets weigh no more, less their mean."""
    _, of, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[of]
    centred: Floats = (ranks - ranks.mean()) / len(values)
    return centred


def _correlation(left: Floats, right: Floats) -> float | None:
    size = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / size if size > _SAME else None


LEAST_RANK_AGREEMENT = 0.7
MOST_ERROR_LEFT = 1 / 2
LEAST_COVERAGE = 0.9  # of intervals beyond the range, and how much wider they may be than within:
MOST_TIMES_WIDER = 2

# Scores over a captioner's perplexity are a curve; over its reciprocal (the geometric mean of the
# words' probabilities) they are nearly a line. On each of these scales, more is better.
_SCALES: Mapping[str, Callable[[Floats], Floats]] = {
    name: np.reciprocal if name == "perplexity" else np.positive for name in PREDICTORS
}


@dataclass(frozen=True)
class _ForecastCandidate:
    predictor: str
    fit: str
    seen: LeftOutErrors


@dataclass(frozen=True)
class _Expectation:
    value: float  # more is better
    half_width: float
    beyond: float | None  # how far beyond the better end of the range, as the predictor is shown


def forecast_metrics(
    evaluations: Sequence[PastEvaluation], metrics: Sequence[str], pregen: Mapping[str, float]
) -> dict[str, Any]:
    """Forecast metrics. By metric: `value`, `interval`, `beyond`, `card`, and `none_because` if
    there is no value.

    The scores in `evaluations` are those of metrics and of predictors.
    """
    return {
        name: _forecast_metric(select_history(evaluations, name), name, pregen) for name in metrics
    }


def _forecast_metric(
    history: MetricHistory, metric: str, pregen: Mapping[str, float]
) -> dict[str, Any]:
    thin = explain_too_few(len(history.values), history.many_runs)
    if thin is not None:
        return _none(thin, None)
    direction = _direction(history, metric)
    best = _best(history, direction)
    if best is None:
        return _none(
            "the training runs of this split differ too much in their pre-gen scores for one to be "
            "forecast from the others",
            None,
        )
    card = _card(history, best, direction)
    own = restore_infinity(pregen[catalogue.find_metric(best.predictor).name])
    little = _little_evidence(card)
    if little is not None:
        return _none(little, card)
    expected = _expect(history, best, direction, own)
    if isinstance(expected, str):
        return _none(expected, card)
    value, half = direction * expected.value, expected.half_width
    lowest, highest = catalogue.find_metric(metric).range
    found = [min(max(at, lowest), highest) for at in (value, value - half, value + half)]
    return {
        "value": found[0],
        "interval": found[1:],
        "beyond": expected.beyond,
        "none_because": None,
        "card": card,
    }


def _none(reason: str, card: Mapping[str, Any] | None) -> dict[str, Any]:
    nothing = {"value": None, "interval": None, "beyond": None}
    return {**nothing, "none_because": reason, "card": card}


def _direction(history: MetricHistory, metric: str) -> int:
    """1 if better pre-gen scores mean more of the metric, else -1; the history may decide."""
    higher = catalogue.find_metric(metric).higher_is_better
    if higher is None:
        hits = history.pregen["mean_join_normcount_filter0"]
        falls = (correlate_ranks(hits, history.values) or 0) < 0
        return -1 if falls else 1
    return 1 if higher else -1


def _best(history: MetricHistory, direction: int) -> _ForecastCandidate | None:
    candidates = [
        _ForecastCandidate(
            predictor,
            fit,
            leave_one_run_out(
                FITS[fit],
                _SCALES[predictor](history.pregen[predictor]),
                direction * history.values,
                history.runs,
            ),
        )
        for predictor in PREDICTORS
        for fit in FITS
    ]
    tried = [
        one for one in candidates if not explain_too_few(len(one.seen.errors), one.seen.many_runs)
    ]
    return min(tried, key=lambda one: one.seen.left, default=None)


def _card(history: MetricHistory, best: _ForecastCandidate, direction: int) -> dict[str, Any]:
    better = _SCALES[best.predictor](history.pregen[best.predictor])
    values = direction * history.values
    within = correlate_within_sets(better, values, find_comparable_sets(history))
    return {
        "evaluations": len(values),
        "runs": history.many_runs,
        "predictor": best.predictor,
        "fit": best.fit,
        "range": [at if math.isfinite(at) else None for at in _range(history, best)],
        "error": best.seen.error,
        "error_without": best.seen.error_without,
        "rank_agreement": correlate_ranks(better, values),
        "rank_agreement_within": within,
        "coverage": best.seen.coverage,
    }


def _little_evidence(card: Mapping[str, Any]) -> str | None:
    runs = f"{card['evaluations']} evaluations of {count_noun(card['runs'], 'training run')} "
    runs += "are too little evidence: "
    if card["error"] > MOST_ERROR_LEFT * card["error_without"]:
        return (
            f"{runs}with {card['predictor']} the error about a run that was left out is "
            f"{card['error']:.4f}, without it {card['error_without']:.4f}"
        )
    within = card["rank_agreement_within"]
    if within is None or within < LEAST_RANK_AGREEMENT:
        found = "nothing" if within is None else f"{within:+.2f}"
        return (
            f"{runs}{card['predictor']} does not rank evaluations of one run, or of one "
            f"architecture, as this metric does (Spearman {found}, at least "
            f"{LEAST_RANK_AGREEMENT} is needed)"
        )
    return None


def _range(history: MetricHistory, best: _ForecastCandidate) -> tuple[float, float]:
    """The range of at least two runs: one alone is no evidence of how far runs differ."""
    shown = history.pregen[best.predictor][best.seen.tested]
    return float(shown.min()), float(shown.max())


def _expect(
    history: MetricHistory, best: _ForecastCandidate, direction: int, own: float
) -> _Expectation | str:
    """The score that goes with the predictor's value `own`, or why it has no forecast."""
    scale, (low, high) = _SCALES[best.predictor], _range(history, best)
    places, values = scale(history.pregen[best.predictor]), direction * history.values
    place, best_place = float(scale(np.array([own]))[0]), float(best.seen.places.max())
    fit, half, beyond = FITS[best.fit], best.seen.half_width(place), None
    if not low <= own <= high:
        outside = _tell_outside(own, best.predictor, low, high)
        if place < best_place:
            return outside
        fit, beyond = fit_upper_line, max(low - own, own - high)
        seen = leave_better_out(fit, places, values, history.runs, place - best_place)
        within = best.seen.half_width(best_place)
        hindrance = _explain_unknown(seen, place, within)
        if hindrance is not None:
            return f"{outside}; so far beyond, {hindrance}"
        half = max(within, seen.half_width(place))
    value = float(fit(places, values, weigh_runs(history.runs))(np.array([place]))[0])
    return _Expectation(value, half, beyond)


def _explain_unknown(seen: LeftOutErrors, place: float, within: float) -> str | None:
    """Why an interval beyond the range would not hold, or would say too little; else None."""
    if explain_too_few(len(seen.errors), seen.many_runs) or seen.coverage is None:
        return "too few evaluations tell how wrong a forecast is"
    if seen.coverage < LEAST_COVERAGE:
        return (
            f"{seen.coverage:.0%} of the intervals hold for runs that were left out; at least "
            f"{LEAST_COVERAGE:.0%} is needed"
        )
    half = seen.half_width(place)
    if half > MOST_TIMES_WIDER * within:
        return (
            f"half an interval is {half:.3g} wide, within it {within:.3g}; at most "
            f"{MOST_TIMES_WIDER} times that is given"
        )
    return None


def _tell_outside(own: float, predictor: str, low: float, high: float) -> str:
    below = own < low
    return (
        f"{predictor} lies outside what earlier training runs have shown: it is {own:.4g}, "
        f"{low - own if below else own - high:.3g} {'below' if below else 'above'} the {low:.4g} "
        f"to {high:.4g} where two training runs or more have been"
    )
