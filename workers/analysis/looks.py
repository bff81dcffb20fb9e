"""Looks at the images decoded so far: estimates of the whole set's scores, valid at every look.

The mean of the first n of N images in random order differs from the whole's by a Gaussian with a
variance in proportion to 1/n - 1/N, and what a later look adds is independent of the looks before
(a random walk in the information n N / (N - n)). The error of the whole sequence is spent look by
look, in proportion to the images seen; each look's critical value follows by integrating over the
walks that have stayed inside so far (Armitage, McPherson and Rowe 1969; Lan and DeMets 1983). What
a look spends depends only on the looks before it, so the number of looks need not be planned.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, TypedDict

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from service.contract.results import DifferenceBounds
from workers import tensor_files
from workers.analysis import estimation, past_systems
from workers.analysis.estimation import ScoreEstimate
from workers.analysis.past_systems import PastSystems
from workers.metrics.family import FamilyScores, Floats, Statistics

ERROR = 0.05  # of all looks together
_NOMINAL = 0.04  # spent: real scores have heavy tails, and up to 1.3 times as many are outside
_UNEVEN = 0.03  # spent where chances are unequal: tails are heavier still
_GRID = 601  # points inside a look's limits
_WIDEST = 8.0  # standard errors: no limit is wider
_NEAR = 1e-3  # looks whose information differs by less count as one


def compute_critical_values(
    looks: Sequence[int],
    images: int,
    error: float | None = None,
    odds: Floats | None = None,
    tests: int = 1,
) -> list[float]:
    """Critical values in standard errors, for looks after fewer than all images; `odds`: of images
    in an order that is not uniform; `tests`: that are to be right together.
    """
    if error is None:
        error = (_NOMINAL if odds is None else _UNEVEN) / tests
    information = [_measure_information(n, images, odds) for n in looks]
    found: list[float] = []
    spent, last = 0.0, 0.0
    walk: _LookWalk | None = None
    for n, now in zip(looks, information, strict=True):
        if walk is not None and now - last < _NEAR * now:
            found.append(found[-1])
            continue
        allowed = error * n / images - spent
        spent += allowed
        kept = math.sqrt(last / now)
        found.append(_limit(walk, kept, allowed))
        walk = walk.after(kept, found[-1]) if walk else _LookWalk.begin(found[-1])
        last = now
    return found


def _measure_information(look: int, images: int, odds: Floats | None) -> float:
    if odds is None:
        return look * images / (images - look)
    return past_systems.measure_information(odds, look)


@dataclass(frozen=True)
class _LookWalk:
    """The density of the standardised difference at a look, for walks that were always inside."""

    places: Floats
    density: Floats

    @classmethod
    def begin(cls, limit: float) -> Self:
        places = np.linspace(-limit, limit, _GRID)
        return cls(places, np.exp(-(places**2) / 2) / math.sqrt(2 * math.pi))

    def beyond(self, kept: float, limit: float) -> float:
        """The probability of being outside at the next look; `kept`: the looks' correlation."""
        spread = math.sqrt(1 - kept**2)
        above = ndtr((kept * self.places - limit) / spread)
        below = ndtr((-kept * self.places - limit) / spread)
        return float(np.trapezoid(self.density * (above + below), self.places))

    def after(self, kept: float, limit: float) -> "_LookWalk":
        spread = math.sqrt(1 - kept**2)
        places = np.linspace(-limit, limit, _GRID)
        steps = (places[:, None] - kept * self.places) / spread
        kernel = np.exp(-(steps**2) / 2) / (spread * math.sqrt(2 * math.pi))
        density = np.asarray(np.trapezoid(kernel * self.density, self.places, axis=1))
        return _LookWalk(places, density)


def _limit(walk: _LookWalk | None, kept: float, allowed: float) -> float:
    if walk is None:
        return float(-ndtri(allowed / 2))
    if walk.beyond(kept, _WIDEST) >= allowed:
        return _WIDEST
    return float(brentq(lambda limit: walk.beyond(kept, limit) - allowed, 0.0, _WIDEST))


LEAST = 100  # images: a mean of fewer is too far from a Gaussian for its interval to be valid


class LookEstimate(TypedDict):
    """A score of the whole set, as it is estimated after `images` of them."""

    value: float
    interval: tuple[float, float] | None
    images: int
    of: int
    history: int


class EstimatedMetric(NamedTuple):
    """A metric's estimate, and its difference where a baseline is known and images are to come."""

    score: LookEstimate
    difference: DifferenceBounds | None


@dataclass(frozen=True)
class LookBatch:
    """The images of some captions, and the scores of the captions by families."""

    images: NDArray[np.int64]
    scored: Sequence[FamilyScores]


@dataclass(frozen=True)
class LookRecord:
    """Record of looks. `images` are in the order in which they were decoded, and so is the first
    axis of all statistics; `looks` has the number of images at each look; `signatures` are those of
    the scores, by metric.
    """

    images: NDArray[np.int64]
    looks: tuple[int, ...]
    statistics: Mapping[str, Statistics]
    signatures: Mapping[str, str]


def add_look(before: LookRecord | None, batches: Sequence[LookBatch]) -> LookRecord:
    """Add a look, without families that have not scored all captions."""
    parts = [{each.family: each.statistics for each in batch.scored} for batch in batches]
    parts = parts if before is None else [dict(before.statistics), *parts]
    families = [name for name in parts[0] if all(name in part for part in parts)]
    counts = [] if before is None else [before.images]
    images = np.concatenate([*counts, *(batch.images for batch in batches)])
    return LookRecord(
        images,
        (*(() if before is None else before.looks), len(images)),
        {name: _joined([part[name] for part in parts]) for name in families},
        {name: at for each in batches[-1].scored for name, at in each.signatures.items()},
    )


def _joined(parts: Sequence[Statistics]) -> Statistics:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def estimate_from_looks(
    seen: LookRecord,
    known: Floats,
    baselines: Mapping[str, Statistics],
    systems: PastSystems | None = None,
    tests: int = 1,
) -> dict[str, EstimatedMetric]:
    """Estimate the whole set's scores; `known` and baselines' statistics are of all images.
    `systems`: those by which images were drawn. Bounds of differences are valid for so many `tests`
    together.
    """
    odds = None if systems is None else systems.odds
    critical = _critical(seen, len(known), odds, 1)
    strict = critical if tests == 1 else _critical(seen, len(known), odds, tests)
    drawn = None if systems is None else systems.describe_draw(len(seen.images))
    difficulty = {} if systems is None else systems.difficulty
    placed = np.argsort(seen.images)  # sums of all images then equal the whole's, to the last bit
    images = seen.images[placed]
    said: dict[str, EstimatedMetric] = {}
    for family, unplaced in seen.statistics.items():
        statistics = {name: values[placed] for name, values in unplaced.items()}
        past = baselines.get(family)
        for name, found in estimation.estimate_scores(
            family, statistics, images, known, past, drawn
        ).items():
            score = LookEstimate(
                value=found.value,
                interval=None if critical is None else found.interval(critical),
                images=len(images),
                of=len(known),
                history=difficulty[name].systems if name in difficulty else 0,
            )
            said[name] = EstimatedMetric(score, _bound_difference(found, strict))
    return said


def _bound_difference(found: ScoreEstimate, critical: float | None) -> DifferenceBounds | None:
    """Bound the difference; None once all images are seen: a comparison then tells it."""
    if found.baseline is None or not critical:
        return None
    low, high = (end - found.baseline.score for end in found.interval(critical))
    return DifferenceBounds(low=low, high=high, error=found.baseline.error)


def _critical(seen: LookRecord, whole: int, odds: Floats | None, tests: int) -> float | None:
    """The critical value of the last look; None if there are too few images, 0 if there are all."""
    if len(seen.images) == whole:
        return 0.0
    told = [look for look in seen.looks if look >= LEAST]
    return compute_critical_values(told, whole, odds=odds, tests=tests)[-1] if told else None


def write_looks(path: Path, seen: LookRecord) -> None:
    tensors: dict[str, NDArray[Any]] = {
        f"statistics/{family}/{name}": values
        for family, statistics in seen.statistics.items()
        for name, values in statistics.items()
    }
    tensors |= {"images": seen.images, "looks": np.array(seen.looks, np.int64)}
    metadata = {"prescore_looks": "1", "signatures": json.dumps(dict(seen.signatures))}
    tensor_files.write_tensors(path, tensors, metadata)


def read_looks(path: Path) -> LookRecord:
    tensors = load_file(path)
    statistics: dict[str, Statistics] = {}
    for key in tensors:
        if key.startswith("statistics/"):
            _, family, name = key.split("/")
            statistics.setdefault(family, {})[name] = tensors[key]
    with safe_open(path, framework="numpy") as file:
        signatures = json.loads(file.metadata()["signatures"])
    return LookRecord(tensors["images"], tuple(tensors["looks"].tolist()), statistics, signatures)
