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
from workers.analysis import estimation, image_order
from workers.analysis import looks as spending
from workers.inference.columns import ProbabilityColumns
from workers.metrics import postgen, references
from workers.metrics.family import Statistics
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
OFTEN = tuple(range(128, IMAGES, 8))


@dataclass(frozen=True)
class Captioner:
    """`known` (images, 4) is what its pre-gen scores tell."""

    statistics: Statistics
    known: NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """Of many orders: the share whose intervals left the score of all to either side at any look,
    and the mean share of images before a threshold so far below it is excluded.
    """

    above: float
    below: float
    shares: list[float]


@cache
def people(data: Path) -> PreparedReferences:
    return references.index_tokens(systems.references(data, "flickr8k"), "none")


def checkpoint(data: Path, run: str, place: int, metric: str, jvm: Jvm | None = None) -> Captioner:
    """One of a training run's fifteen; the last is its best."""
    found = np.load(data / "runs" / f"{run}.npz")
    offsets = (found[name].astype(np.int64) for name in ("caption_offsets", "image_offsets"))
    no_words = np.zeros((0, 1), np.uint16), np.zeros((0, 1), np.float32)
    columns = ProbabilityColumns(found["logp"][place], found["rank"][place], *offsets, *no_words)
    captions = found["greedy"][place].tolist()
    return Captioner(_scored(data, captions, metric, jvm), image_order.describe_images(columns))


def published(data: Path, name: str, metric: str, jvm: Jvm | None = None) -> Captioner:
    captions = systems.system(data, "flickr8k", name).captions
    return Captioner(_scored(data, captions, metric, jvm), np.zeros((IMAGES, 0)))


def _scored(data: Path, captions: list[str], metric: str, jvm: Jvm | None) -> Statistics:
    prepared, rows = people(data), np.arange(IMAGES)
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
) -> Trial:
    """Each order looked at again and again, until all images are seen."""
    family = FAMILIES[metric]
    truth = postgen.compute_corpus_scores(family, captioner.statistics)[metric]
    known = captioner.known if regressed else np.zeros((IMAGES, 1))
    past = None if baseline is None else baseline.statistics
    limits = spending.compute_critical_values(looks, IMAGES)
    bounds = np.empty((orders, len(looks), 2))
    for seed in range(orders):
        drawn = image_order.draw_image_order(known, seed)
        for at, look in enumerate(looks):
            images = drawn[:look]
            seen = {name: values[images] for name, values in captioner.statistics.items()}
            found = estimation.estimate_scores(family, seen, images, known, past)[metric]
            bounds[seed, at] = found.interval(limits[at])
    return Trial(
        above=float((bounds[:, :, 0] > truth).any(axis=1).mean()),
        below=float((bounds[:, :, 1] < truth).any(axis=1).mean()),
        shares=[_share(bounds, truth - gap, looks) for gap in GAPS[metric]],
    )


def _share(bounds: NDArray[np.float64], threshold: float, looks: Sequence[int]) -> float:
    decided = (bounds[:, :, 0] > threshold) | (bounds[:, :, 1] < threshold)
    ends = np.array([*looks, IMAGES])
    first = np.where(decided.any(axis=1), decided.argmax(axis=1), len(looks))
    return float(ends[first].mean() / IMAGES)
