"""Early verdicts tried out on real captioners: how often they are wrong, and how soon they come.

Two training runs on Flickr8k's features: what each checkpoint thought of the references (pre-gen
scores that were not made up), its greedy captions, and their scores image by image. And twelve
published captioners, of which nothing but captions is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parity import systems
from workers.analysis import estimation, image_order, past_systems
from workers.analysis import looks as spending
from workers.analysis.estimation import ScoreEstimate
from workers.analysis.past_systems import PastSystems
from workers.inference.columns import ProbabilityColumns
from workers.metrics import postgen, references
from workers.metrics.family import Floats, Statistics
from workers.metrics.java.jvm import Jvm
from workers.metrics.references import PreparedReferences
from workers.metrics.tokens import tokenize

IMAGES = 1000
FAMILIES = {"cider_d": "cider_d", "bleu_4": "bleu", "rouge_l": "rouge_l", "meteor": "meteor"}
GAPS = {  # of the same weight beside a metric's deviation over images
    "cider_d": (0.01, 0.02, 0.05, 0.1),
    "bleu_4": (0.005, 0.01, 0.02, 0.05),
    "rouge_l": (0.005, 0.01, 0.02, 0.05),
    "meteor": (0.002, 0.005, 0.01, 0.02),
}
SERVICE = tuple(range(128, IMAGES, 128))  # looks as the service takes them
FIRST = (50, 100, 250)  # images after which errors are told
SINGLE = 1.96  # the critical value of one look
OFTEN = tuple(range(128, IMAGES, 8))


@dataclass(frozen=True)
class Captioner:
    """`known` (images, 4) is what its pre-gen scores tell."""

    statistics: Statistics
    known: NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """Of many orders: the share whose intervals left the score of all to either side at any look,
    and the mean share of images before a threshold so far below it is excluded. `errors` (orders,
    looks) are those of estimates, and `held` tells whose interval held the truth.
    """

    above: float
    below: float
    shares: list[float]
    errors: NDArray[np.float64]
    held: NDArray[np.bool_]


@cache
def people(data: Path, dataset: str = "flickr8k") -> PreparedReferences:
    return references.index_tokens(systems.references(data, dataset), "none")


def checkpoint(data: Path, run: str, place: int, metric: str, jvm: Jvm | None = None) -> Captioner:
    """One of a training run's fifteen; the last is its best."""
    found = np.load(data / "runs" / f"{run}.npz")
    offsets = (found[name].astype(np.int64) for name in ("caption_offsets", "image_offsets"))
    no_words = np.zeros((0, 1), np.uint16), np.zeros((0, 1), np.float32)
    columns = ProbabilityColumns(found["logp"][place], found["rank"][place], *offsets, *no_words)
    captions = found["greedy"][place].tolist()
    return Captioner(_scored(data, captions, metric, jvm), image_order.describe_images(columns))


def published(
    data: Path, name: str, metric: str, jvm: Jvm | None = None, dataset: str = "flickr8k"
) -> Captioner:
    captions = systems.system(data, dataset, name).captions
    found = _scored(data, captions, metric, jvm, dataset)
    return Captioner(found, np.zeros((len(captions), 0)))


def _scored(
    data: Path, captions: list[str], metric: str, jvm: Jvm | None, dataset: str = "flickr8k"
) -> Statistics:
    prepared, rows = people(data, dataset), np.arange(len(captions))
    tokens = tokenize(captions, prepared.tokenizer, jvm)
    return postgen.score_tokens(FAMILIES[metric], tokens, prepared, rows, jvm).statistics


def tried(
    metric: str,
    captioner: Captioner,
    baseline: Captioner | None,
    *,
    regressed: bool,
    orders: int,
    looks: Sequence[int] = SERVICE,
    systems: PastSystems | None = None,
    strata: Floats | None = None,
    first: Sequence[int] = (),
    begin: int = 0,
) -> Trial:
    """Each order looked at again and again, until all images are seen. Errors, and whether a single
    95 % interval holds the truth, are those after the `first` images; seeds begin with `begin`.
    """
    family = FAMILIES[metric]
    truth = postgen.compute_corpus_scores(family, captioner.statistics)[metric]
    whole = len(captioner.known)
    known = captioner.known if regressed else np.zeros((whole, 1))
    odds = None if systems is None else systems.odds
    if strata is None:
        strata = known if systems is None else systems.hardness
    past = None if baseline is None else baseline.statistics
    limits = spending.compute_critical_values(looks, whole, odds=odds)
    draws = {look: systems and systems.describe_draw(look) for look in (*looks, *first)}
    bounds, errors = np.empty((orders, len(looks), 2)), np.empty((orders, len(first)))
    held = np.empty((orders, len(first)), bool)

    def estimate(images: NDArray[np.int64]) -> ScoreEstimate:
        seen = {name: values[images] for name, values in captioner.statistics.items()}
        drawn = draws[len(images)]
        return estimation.estimate_scores(family, seen, images, known, past, drawn)[metric]

    for seed in range(orders):
        order = image_order.draw_image_order(strata, begin + seed, odds)
        for at, look in enumerate(looks):
            bounds[seed, at] = estimate(order[:look]).interval(limits[at])
        for at, look in enumerate(first):
            found = estimate(order[:look])
            low, high = found.interval(SINGLE)
            errors[seed, at], held[seed, at] = found.value - truth, low <= truth <= high
    return Trial(
        above=float((bounds[:, :, 0] > truth).any(axis=1).mean()),
        below=float((bounds[:, :, 1] < truth).any(axis=1).mean()),
        shares=[_share(bounds, truth - gap, looks, whole) for gap in GAPS[metric]],
        errors=errors,
        held=held,
    )


def left_out(
    captioners: Sequence[Captioner], metric: str, way: str, orders: int, past: int = 11
) -> list[Trial]:
    """Each of the captioners with others as its history, with one as its baseline, or in an order
    that is stratified by the others' scores.
    """
    whole = len(captioners[0].known)
    looks = tuple(range(128, whole, 128 if whole == IMAGES else whole // 8))
    trials = []
    for at, captioner in enumerate(captioners):
        others = [*captioners[at + 1 :], *captioners[:at]][:past]
        systems = past_systems.summarise_systems(
            {FAMILIES[metric]: [each.statistics for each in others]}
        )
        how = {
            "regressed": False,
            "orders": orders,
            "looks": looks,
            "first": FIRST,
            "begin": at * orders,
        }
        how["systems"] = systems if way == "history" else None
        how["strata"] = systems.hardness if way == "stratified" else None
        trials.append(tried(metric, captioner, others[0] if way == "baseline" else None, **how))
    return trials


def _share(
    bounds: NDArray[np.float64], threshold: float, looks: Sequence[int], whole: int
) -> float:
    decided = (bounds[:, :, 0] > threshold) | (bounds[:, :, 1] < threshold)
    ends = np.array([*looks, whole])
    first = np.where(decided.any(axis=1), decided.argmax(axis=1), len(looks))
    return float(ends[first].mean() / whole)
