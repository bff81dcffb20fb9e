"""Verdict on metrics by a file of judgements, as a table that can be written as JSON."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from service.contract.formats import strict_json
from service.contract.metrics import catalogue
from workers.bench.judgements import Judgements
from workers.bench.judging import correlations, preferences, systems
from workers.bench.judging.correlations import NAMES, RatingCorrelations
from workers.bench.judging.intervals import ObservationGroups, compute_difference_interval
from workers.bench.judging.preferences import KINDS, PreferenceFigure
from workers.bench.judging.scoring import ImageClusters, JudgedCaptions, JudgedScores, cluster_lines
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints

Raters = Literal["flat", "mean", "mode"]


_RULES: Mapping[Raters, Callable[[Sequence[float]], Sequence[float]]] = {
    "flat": lambda ratings: ratings,
    "mean": lambda ratings: [statistics.fmean(ratings)],
    # The lowest one if several are equally frequent, as in the published figures.
    "mode": lambda ratings: [min(statistics.multimode(ratings))],
}


def list_observations(ratings: Sequence[Sequence[float]], raters: Raters) -> tuple[Floats, Ints]:
    """The ratings that are correlated with scores, and the line that each belongs to."""
    kept = [_RULES[raters](each) for each in ratings]
    lines = np.repeat(np.arange(len(kept)), [len(each) for each in kept])
    return np.array([rating for each in kept for rating in each], np.float64), lines


FigureShifts = tuple[float, Floats]  # a figure of a metric, and how much each group shifts it


def compare_correlations(
    measured: Mapping[str, RatingCorrelations],
    signs: Mapping[str, int],
    groups: ObservationGroups,
    chosen: str | None,
) -> dict[str, Any]:
    """Compare correlations. `signs`: -1 for distances, which agree with people if they fall."""
    found = {}
    for what in NAMES:
        known = {
            metric: (signs[metric] * each.values[what], signs[metric] * each.shifts[what])
            for metric, each in measured.items()
            if each.reason is None
        }
        found[what] = _compared(known, groups, chosen)
    return found


def compare_preferences(
    told: Mapping[str, PreferenceFigure],
    agreed: Mapping[str, Mapping[str, Floats]],
    chosen: str | None,
) -> dict[str, Any]:
    """Compare by category, then by the value of a tie. `agreed`: by metric, what each pair adds."""
    return {
        name: {
            kind: _compared(
                {
                    metric: (figure.value(each[kind]), figure.shifts(each[kind]))
                    for metric, each in agreed.items()
                },
                figure.groups,
                chosen,
            )
            for kind in KINDS
        }
        for name, figure in told.items()
    }


def _compared(
    known: Mapping[str, FigureShifts], groups: ObservationGroups, chosen: str | None
) -> dict[str, Any]:
    best = chosen or max(known, key=lambda metric: known[metric][0], default=None)
    if best is None or best not in known:
        return {"against": best, "metrics": {}}
    value, shifts = known[best]
    rows = {}
    for metric, (other, moved) in known.items():
        if metric != best:
            sure = compute_difference_interval(other - value, moved - shifts, groups)
            interval, p = sure or (None, None)
            rows[metric] = {"difference": other - value, "interval": interval, "p": p}
    return {"against": best, "metrics": rows}


Verdict = Mapping[str, Any]


def judge_metrics(
    judgements: Judgements,
    given: JudgedCaptions,
    scored: JudgedScores,
    raters: Raters,
    chosen: str | None = None,
) -> dict[str, Any]:
    """Make the verdict: `rated` and `pairs` by metric, empty if there are no such lines. `n` counts
    lines. `comparisons` are with the best metric, or with the `chosen` one; `systems` is empty if
    no line names one; `lines` has every score.
    """
    images = cluster_lines(judgements, given)
    rated = _rated(judgements, given, scored, raters, images, chosen) if judgements.rated else {}
    pairs = _pairs(judgements, given, scored, images, chosen) if judgements.pairs else {}
    kinds = {"rated": rated, "pairs": pairs}
    return {
        **{kind: each.get("rows", {}) for kind, each in kinds.items()},
        "missing": {
            name: {"code": error.code, "detail": error.detail}
            for name, error in scored.missing.items()
        },
        "signatures": scored.signatures,
        "raters": raters,
        "reference_sets": len(given.reference_sets),
        "comparisons": {kind: each.get("comparisons", {}) for kind, each in kinds.items()},
        "systems": rated.get("systems", {}),
        "lines": _lines(judgements, given, scored),
    }


def _sign(name: str) -> int:
    """Factor that puts scores on a scale where more is better."""
    return -1 if catalogue.find_metric(name).higher_is_better is False else 1


def _rated(
    judgements: Judgements,
    given: JudgedCaptions,
    scored: JudgedScores,
    raters: Raters,
    images: ImageClusters,
    chosen: str | None,
) -> dict[str, Any]:
    ratings, lines = list_observations([each.ratings for each in judgements.rated], raters)
    places, groups = given.rated[lines], ObservationGroups.of(images.rated[lines])
    counts = {
        "n": len(judgements.rated),
        "observations": len(ratings),
        "clusters": groups.many,
    }
    measured = {
        name: correlations.measure_correlations(scores[places], ratings, groups)
        for name, scores in scored.values.items()
    }
    signs = {name: _sign(name) for name in measured}
    return {
        "rows": {
            name: counts | correlations.make_correlation_row(each, groups)
            for name, each in measured.items()
        },
        "comparisons": compare_correlations(measured, signs, groups, chosen),
        "systems": systems.correlate_systems(
            [each.system for each in judgements.rated],
            {name: scores[given.rated] for name, scores in scored.values.items()},
            np.bincount(lines, ratings) / np.bincount(lines),
            images.rated,
        ),
    }


def _pairs(
    judgements: Judgements,
    given: JudgedCaptions,
    scored: JudgedScores,
    images: ImageClusters,
    chosen: str | None,
) -> dict[str, Any]:
    told = preferences.define_figures(judgements.pairs, images.pairs)
    agreed = {
        name: preferences.measure_agreement(judgements.pairs, _sign(name) * scores[given.pairs])
        for name, scores in scored.values.items()
    }
    return {
        "rows": {name: preferences.make_accuracy_rows(told, each) for name, each in agreed.items()},
        "comparisons": compare_preferences(told, agreed, chosen),
    }


def _lines(judgements: Judgements, given: JudgedCaptions, scored: JudgedScores) -> dict[str, Any]:
    """Scores as the metrics give them, by line; of a pair those of a and b."""
    places = {
        "rated": (given.rated, judgements.rated_lines),
        "pairs": (given.pairs, judgements.pair_lines),
    }
    return {
        kind: {
            "line": list(numbers or range(1, len(own) + 1)),
            "scores": {
                name: strict_json.replace_infinite(scores[own].tolist())
                for name, scores in scored.values.items()
            },
        }
        for kind, (own, numbers) in places.items()
    }
