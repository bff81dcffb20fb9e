"""What looks have gathered, one after the other, and what a look says about the whole set."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file

from workers.analysis.estimate import estimation, spending
from workers.files import tensor_files
from workers.metrics.family import Floats, Scores, Statistics

LEAST = 100  # images: a mean of fewer is too far from a Gaussian for its interval to be valid


class Said(TypedDict):
    """A score of the whole set, as it is estimated after `images` of them."""

    value: float
    interval: tuple[float, float] | None
    images: int
    of: int


@dataclass(frozen=True)
class Batch:
    """The images of some captions, and the scores of the captions by families."""

    images: NDArray[np.int64]
    scored: Sequence[Scores]


@dataclass(frozen=True)
class Seen:
    """`images` are in the order in which they were decoded, and so is the first axis of all
    statistics; `looks` says after how many images each look was; `signatures` are those of the
    scores, by metric.
    """

    images: NDArray[np.int64]
    looks: tuple[int, ...]
    statistics: Mapping[str, Statistics]
    signatures: Mapping[str, str]


def after(before: Seen | None, batches: Sequence[Batch]) -> Seen:
    """Add one more look: what was scored before is not scored again. Families that have not scored
    all captions are left out.
    """
    parts = [{each.family: each.statistics for each in batch.scored} for batch in batches]
    parts = parts if before is None else [dict(before.statistics), *parts]
    families = [name for name in parts[0] if all(name in part for part in parts)]
    counts = [] if before is None else [before.images]
    images = np.concatenate([*counts, *(batch.images for batch in batches)])
    return Seen(
        images,
        (*(() if before is None else before.looks), len(images)),
        {name: _joined([part[name] for part in parts]) for name in families},
        {name: at for each in batches[-1].scored for name, at in each.signatures.items()},
    )


def _joined(parts: Sequence[Statistics]) -> Statistics:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def tell(seen: Seen, known: Floats, baselines: Mapping[str, Statistics]) -> dict[str, Said]:
    """Estimate the scores of the whole set, by metric. `known` (images, columns) is of the whole
    set, and so are a baseline's statistics, for the families that it has been scored by.
    """
    critical = _critical(seen, len(known))
    placed = np.argsort(seen.images)  # sums of all images then equal the whole's, to the last bit
    images = seen.images[placed]
    said: dict[str, Said] = {}
    for family, unplaced in seen.statistics.items():
        statistics = {name: values[placed] for name, values in unplaced.items()}
        past = baselines.get(family)
        for name, found in estimation.estimates(family, statistics, images, known, past).items():
            said[name] = Said(
                value=found.value,
                interval=None if critical is None else found.interval(critical),
                images=len(images),
                of=len(known),
            )
    return said


def _critical(seen: Seen, whole: int) -> float | None:
    """The critical value of the last look; None if there are too few images, 0 if there are all."""
    if len(seen.images) == whole:
        return 0.0
    told = [look for look in seen.looks if look >= LEAST]
    return spending.critical_values(told, whole)[-1] if told else None


def write(path: Path, seen: Seen) -> None:
    tensors: dict[str, NDArray[Any]] = {
        f"statistics/{family}/{name}": values
        for family, statistics in seen.statistics.items()
        for name, values in statistics.items()
    }
    tensors |= {"images": seen.images, "looks": np.array(seen.looks, np.int64)}
    metadata = {"prescore_looks": "1", "signatures": json.dumps(dict(seen.signatures))}
    tensor_files.write(path, tensors, metadata)


def read(path: Path) -> Seen:
    tensors = load_file(path)
    statistics: dict[str, Statistics] = {}
    for key in tensors:
        if key.startswith("statistics/"):
            _, family, name = key.split("/")
            statistics.setdefault(family, {})[name] = tensors[key]
    with safe_open(path, framework="numpy") as file:
        signatures = json.loads(file.metadata()["signatures"])
    return Seen(tensors["images"], tuple(tensors["looks"].tolist()), statistics, signatures)
