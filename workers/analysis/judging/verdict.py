"""What a file of judgements says of metrics, as a table that JSON can write."""

from collections.abc import Mapping
from typing import Any

from service.contract.metrics import catalogue
from workers.analysis.judging import correlations, preferences
from workers.analysis.judging.raters import Raters, observations
from workers.analysis.judging.scoring import Captions, Scored
from workers.files.judgements import Judgements
from workers.metrics.family import Floats

Verdict = Mapping[str, Any]


def verdict(
    judgements: Judgements, given: Captions, scored: Scored, raters: Raters
) -> dict[str, Any]:
    """`rated` and `pairs` by metric, empty where there are no such lines. `n` counts lines."""
    return {
        "rated": _rated(judgements, given, scored, raters) if judgements.rated else {},
        "pairs": {
            name: preferences.accuracies(judgements.pairs, _better(name, scores[given.pairs]))
            for name, scores in scored.values.items()
            if judgements.pairs
        },
        "missing": {
            name: {"code": error.code, "detail": error.detail}
            for name, error in scored.missing.items()
        },
        "signatures": scored.signatures,
        "raters": raters,
        "reference_sets": len(given.reference_sets),
    }


def _better(name: str, scores: Floats) -> Floats:
    """More is better, also of a distance."""
    return -scores if catalogue.metric(name).higher_is_better is False else scores


def _rated(
    judgements: Judgements, given: Captions, scored: Scored, raters: Raters
) -> dict[str, Any]:
    ratings, lines = observations([each.ratings for each in judgements.rated], raters)
    places = given.rated[lines]
    counts = {"n": len(judgements.rated), "observations": len(ratings)}
    return {
        name: counts | correlations.correlate(scores[places], ratings, given.rows[places])
        for name, scores in scored.values.items()
    }
