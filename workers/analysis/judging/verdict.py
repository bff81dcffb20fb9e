"""What a file of judgements says about metrics, as a table that can be written as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from service.contract.formats import strict_json
from service.contract.metrics import catalogue
from workers.analysis.judging import against, correlations, preferences, systems
from workers.analysis.judging.clusters import Clusters, clusters
from workers.analysis.judging.intervals import Groups
from workers.analysis.judging.raters import Raters, observations
from workers.analysis.judging.scoring import Captions, JudgedScores
from workers.files.judgements import Judgements

Verdict = Mapping[str, Any]


def verdict(
    judgements: Judgements,
    given: Captions,
    scored: JudgedScores,
    raters: Raters,
    chosen: str | None = None,
) -> dict[str, Any]:
    """Make the verdict: `rated` and `pairs` by metric, empty if there are no such lines. `n` counts
    lines. `comparisons` are with the best metric, or with the `chosen` one; `systems` is empty if
    no line names one; `lines` has every score.
    """
    images = clusters(judgements, given)
    rated = _rated(judgements, given, scored, raters, images, chosen) if judgements.rated else {}
    pairs = _pairs(judgements, given, scored, images, chosen) if judgements.pairs else {}
    return {
        "rated": rated.get("rows", {}),
        "pairs": pairs.get("rows", {}),
        "missing": {
            name: {"code": error.code, "detail": error.detail}
            for name, error in scored.missing.items()
        },
        "signatures": scored.signatures,
        "raters": raters,
        "reference_sets": len(given.reference_sets),
        "comparisons": {
            "rated": rated.get("comparisons", {}),
            "pairs": pairs.get("comparisons", {}),
        },
        "systems": rated.get("systems", {}),
        "lines": _lines(judgements, given, scored),
    }


def _sign(name: str) -> int:
    """What scores are multiplied by, to be on a scale where more is better."""
    return -1 if catalogue.metric(name).higher_is_better is False else 1


def _rated(
    judgements: Judgements,
    given: Captions,
    scored: JudgedScores,
    raters: Raters,
    images: Clusters,
    chosen: str | None,
) -> dict[str, Any]:
    ratings, lines = observations([each.ratings for each in judgements.rated], raters)
    places, groups = given.rated[lines], Groups.of(images.rated[lines])
    counts = {
        "n": len(judgements.rated),
        "observations": len(ratings),
        "clusters": groups.many,
    }
    measured = {
        name: correlations.measure(scores[places], ratings, groups)
        for name, scores in scored.values.items()
    }
    signs = {name: _sign(name) for name in measured}
    return {
        "rows": {name: counts | correlations.row(each, groups) for name, each in measured.items()},
        "comparisons": against.rated(measured, signs, groups, chosen),
        "systems": systems.agreement(
            [each.system for each in judgements.rated],
            {name: scores[given.rated] for name, scores in scored.values.items()},
            np.bincount(lines, ratings) / np.bincount(lines),
            images.rated,
        ),
    }


def _pairs(
    judgements: Judgements,
    given: Captions,
    scored: JudgedScores,
    images: Clusters,
    chosen: str | None,
) -> dict[str, Any]:
    told = preferences.figures(judgements.pairs, images.pairs)
    agreed = {
        name: preferences.agreement(judgements.pairs, _sign(name) * scores[given.pairs])
        for name, scores in scored.values.items()
    }
    return {
        "rows": {name: preferences.accuracies(told, each) for name, each in agreed.items()},
        "comparisons": against.pairs(told, agreed, chosen),
    }


def _lines(judgements: Judgements, given: Captions, scored: JudgedScores) -> dict[str, Any]:
    """Scores as the metrics give them, in the order of the lines whose numbers stand beside; of a
    pair those of a and b.
    """
    places = {
        "rated": (given.rated, judgements.rated_lines),
        "pairs": (given.pairs, judgements.pair_lines),
    }
    return {
        kind: {
            "line": list(_numbered(numbers, len(own))),
            "scores": {
                name: strict_json.finite(scores[own].tolist())
                for name, scores in scored.values.items()
            },
        }
        for kind, (own, numbers) in places.items()
    }


def _numbered(numbers: Sequence[int], many: int) -> Sequence[int]:
    return numbers or range(1, many + 1)
