"""Images whose captions fell most against the baseline of an evaluation's gates."""

import heapq
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

from prescore.models.comparisons import MOST_DROPS, CaptionDrops, Moved
from prescore.models.evaluations import Evaluation, Gate, GateScore
from service.contract.errors import BlobUnreadable, NotFound
from service.contract.metrics import catalogue
from service.engine.service_parts import ServiceParts
from service.runs import comparisons, scored_captions

_SHOWN_FIRST = ("failed", "undecided", "passed")


def find_caption_drops(parts: ServiceParts, evaluation: Evaluation) -> CaptionDrops:
    """Find them in stored scores, by the first metric of a gate that they have; none where the
    captions or scores of one of the two are not stored.
    """
    for (metric, baseline), gate in _list_candidates(evaluation.gates).items():
        with suppress(NotFound, BlobUnreadable):
            if images := _list_images(parts, evaluation.id, baseline, metric):
                return CaptionDrops(gate=gate.gate, metric=metric, baseline=baseline, images=images)
    return CaptionDrops(gate=None, metric=None, baseline=None, images=[])


def _list_candidates(gates: Sequence[Gate]) -> Mapping[tuple[str, str], Gate]:
    """List gates by metric and baseline, in the order in which they are tried."""
    found: dict[tuple[str, str], Gate] = {}
    for gate in sorted(
        (gate for gate in gates if gate.verdict in _SHOWN_FIRST),
        key=lambda gate: _SHOWN_FIRST.index(str(gate.verdict)),
    ):
        rises = {name: _measure_rise(name, score) for name, score in gate.scores.items()}
        for name, rise in sorted(rises.items(), key=lambda pair: pair[1]):
            baseline = gate.scores[name].evaluation
            if baseline and rise < (0 if gate.verdict == "passed" else math.inf):
                found.setdefault((catalogue.find_metric(name).name, baseline), gate)
    return found


def _measure_rise(metric: str, score: GateScore) -> float:
    """Measure by which share of the baseline's value a metric is better; infinite: not known."""
    sign = catalogue.find_metric(metric).sign
    if not sign or score.difference is None or score.baseline is None:
        return math.inf
    return sign * score.difference / (abs(score.baseline) or 1.0)


def _list_images(parts: ServiceParts, identity: str, baseline: str, metric: str) -> list[Moved]:
    a, b = (scored_captions.find_scored_captions(parts, side) for side in (identity, baseline))
    if metric not in a.scores or metric not in b.scores or a.index.places != b.index.places:
        return []
    sign = catalogue.find_metric(metric).sign
    scores = zip(a.column(metric), b.column(metric), strict=True)
    falls = {place: sign * (one - other) for place, (one, other) in enumerate(scores)}
    fell = (place for place, fall in falls.items() if -math.inf < fall < 0)
    places = heapq.nsmallest(MOST_DROPS, fell, key=falls.__getitem__)
    now, before = (side.some_rows(places, [metric]) for side in (a, b))
    return [
        comparisons.compare_image(one, other, [metric])
        for one, other in zip(now, before, strict=True)
    ]
