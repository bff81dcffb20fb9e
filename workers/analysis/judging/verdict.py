"""What a file of judgements says about metrics, as a table that can be written as JSON."""

from collections.abc import Mapping
from typing import Any

from service.contract.metrics import catalogue
from workers.analysis.judging import correlations, preferences
from workers.analysis.judging.clusters import Clusters, clusters
from workers.analysis.judging.intervals import Groups
from workers.analysis.judging.raters import Raters, observations
from workers.analysis.judging.scoring import Captions, Scored
from workers.files.judgements import Judgements
from workers.metrics.family import Floats

Verdict = Mapping[str, Any]


def verdict(
    judgements: Judgements, given: Captions, scored: Scored, raters: Raters
) -> dict[str, Any]:
    """Make the verdict: `rated` and `pairs` by metric, empty if there are no such lines. `n` counts
    lines.
    """
    images = clusters(judgements, given)
    return {
        "rated": _rated(judgements, given, scored, raters, images) if judgements.rated else {},
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
    """Scores on a scale where more is better: distances are negated."""
    return -scores if catalogue.metric(name).higher_is_better is False else scores


def _rated(
    judgements: Judgements, given: Captions, scored: Scored, raters: Raters, images: Clusters
) -> dict[str, Any]:
    ratings, lines = observations([each.ratings for each in judgements.rated], raters)
    places, groups = given.rated[lines], Groups.of(images.rated[lines])
    counts = {
        "n": len(judgements.rated),
        "observations": len(ratings),
        "clusters": groups.many,
    }
    return {
        name: counts
        | correlations.row(correlations.measure(scores[places], ratings, groups), groups)
        for name, scores in scored.values.items()
    }
