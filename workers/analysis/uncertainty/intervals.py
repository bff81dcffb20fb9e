"""95 % intervals of corpus scores: percentiles over resamples of the images."""

import base64
from collections.abc import Iterable, Mapping

import numpy as np

from service.contract.metrics import draws as packing
from workers.analysis.uncertainty import corpora, resampling
from workers.analysis.uncertainty.corpora import Corpus, Summed
from workers.metrics.family import Scores

Interval = tuple[float, float]

BOUNDS = (0.025, 0.975)
HOW: Mapping[str, int] = {"resamples": resampling.RESAMPLES, "seed": resampling.SEED}


def of(scores: Scores) -> dict[str, Interval]:
    """Intervals by metric. There are none for a single image. A metric has none if the score of a
    resample is infinite; nor has the number of different words, because a resample always holds
    fewer.
    """
    return percentiles(resampled(corpora.summed(scores)))


def resampled(summed: Summed) -> Corpus:
    """By metric, the score of every resample; empty for a single image, which can only be drawn as
    itself.
    """
    if summed.images < 2:
        return {}
    return joined(summed.drawn(weights) for weights in resampling.draws(summed.images))


def joined(blocks: Iterable[Corpus]) -> Corpus:
    found = list(blocks)
    return {name: np.concatenate([block[name] for block in found]) for name in found[0]}


def draws(found: Corpus) -> dict[str, str]:
    """The first resamples' scores by metric, packed for a board, in base64."""
    some = {name: values[: packing.DRAWS] for name, values in found.items()}
    return {
        name: base64.b64encode(packing.pack(values.tolist())).decode("ascii")
        for name, values in some.items()
        if len(values) == packing.DRAWS and np.isfinite(found[name]).all()
    }


def percentiles(found: Corpus) -> dict[str, Interval]:
    finite = {name: values for name, values in found.items() if np.isfinite(values).all()}
    if not finite:
        return {}
    low, high = np.quantile(np.stack(list(finite.values())), BOUNDS, axis=1).tolist()
    return dict(zip(finite, zip(low, high, strict=True), strict=True))
