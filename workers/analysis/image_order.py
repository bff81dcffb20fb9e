"""Order in which images are decoded, stratified by their pre-gen scores."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from workers import tensor_files
from workers.analysis.past_systems import PastDifficulty, PastSystems
from workers.inference.columns import ProbabilityColumns
from workers.metrics import pregen
from workers.metrics.family import Floats

STRATA = 16


@dataclass(frozen=True)
class ImageOrder:
    """`images` in the order of decoding; `known` of each image, in the split's order; `past`: the
    systems by which images were drawn, too.
    """

    images: NDArray[np.int64]
    known: Floats
    past: PastSystems | None = None


def describe_images(columns: ProbabilityColumns) -> Floats:
    """Describe images: (images, 4), each column of mean 0 and deviation 1. The columns are
    how likely the likeliest reference is, how likely references are on average, the longest prefix
    and the share of first choices. Together they explain a third of the images' CIDEr-D; six
    columns explain a hundredth more.
    """
    found = pregen.score_images(
        columns.logp, columns.rank, columns.caption_offsets, columns.image_offsets
    )
    with np.errstate(divide="ignore"):
        table = np.stack(
            [
                -np.log(found["min_pplx_none"]),
                -np.log(found["geomean_pplx_none"]),
                found["max_normcount_prefix0"],
                found["max_normcount_filter0"],
            ],
            axis=1,
        )
    return standardise_columns(_finite(table))


def standardise_columns(table: Floats) -> Floats:
    """Each column with mean 0 and deviation 1; a constant column becomes 0."""
    centred = table - table.mean(axis=0)
    spread = table.std(axis=0)
    varied = spread > 1e-12 * np.maximum(1.0, np.abs(table).max(axis=0))
    scaled: Floats = np.where(varied, centred / np.where(varied, spread, 1.0), 0.0)
    return scaled


def draw_image_order(known: Floats, seed: int, odds: Floats | None = None) -> NDArray[np.int64]:
    """Draw a random order of images. A stratum is a group of images with similar expected scores;
    any first n images hold the share of every stratum, to within one image. With `odds`, an image
    is among the first in proportion to its own (sequential Poisson sampling, Ohlsson 1998).
    """
    rng = np.random.default_rng(seed)
    images = len(known)
    expected = known.sum(axis=1)
    ranked = np.lexsort((rng.random(images), expected))
    strata = np.array_split(ranked, min(STRATA, images))
    places = np.empty(images)
    for stratum in strata:
        mixed = rng.permutation(stratum)
        places[mixed] = (np.arange(len(mixed)) + rng.random(len(mixed))) / len(mixed)
    if odds is not None:
        places /= odds
    return np.argsort(places, kind="stable").astype(np.int64)


def write_image_order(path: Path, drawn: ImageOrder) -> None:
    tensors: dict[str, NDArray[Any]] = {"images": drawn.images, "known": drawn.known}
    if drawn.past is not None:
        tensors["odds"] = drawn.past.odds
        for metric, each in drawn.past.difficulty.items():
            tensors[f"difficulty/{metric}"] = each.column
            tensors[f"systems/{metric}"] = np.array([each.systems])
    tensor_files.write_tensors(path, tensors, {"prescore_order": "1"})


def read_image_order(path: Path) -> ImageOrder:
    tensors = load_file(path)
    order = ImageOrder(tensors["images"], tensors["known"])
    if "odds" not in tensors:
        return order
    difficulty = {
        metric: PastDifficulty(column, int(tensors[f"systems/{metric}"][0]))
        for part, _, metric, column in ((*key.partition("/"), tensors[key]) for key in tensors)
        if part == "difficulty"
    }
    return replace(order, past=PastSystems(tensors["odds"], difficulty))


def _finite(table: Floats) -> Floats:
    """Replace infinite numbers: an impossible reference counts as much as the worst finite one."""
    finite = np.isfinite(table)
    worst = np.where(finite, table, np.inf).min(axis=0)
    return np.where(finite, table, np.where(np.isfinite(worst), worst, 0.0))
