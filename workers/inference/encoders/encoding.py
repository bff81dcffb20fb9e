"""From the pictures of a bundle to features: the next pictures are decoded meanwhile."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workers.inference import pictures
from workers.inference.encoders.mobilenet_v2 import MobileNetV2
from workers.inference.features import Computed
from workers.inference.pictures import Pixels, Undecoded
from workers.progress import Progress, silent

_AHEAD = 128  # pictures that are decoded while as many are encoded: what one child decodes


def encode(
    encoder: MobileNetV2,
    sha256: str,
    bundle: Path,
    images: Sequence[str],
    sandbox: str = "required",
    progress: Progress = silent,
) -> Computed:
    """Features of the pictures, a row for each image. A picture that cannot be decoded has a row
    without numbers, and is named with the reason.
    """
    width, height = encoder.header.preprocessing.size
    rows = np.full((len(images), encoder.header.size), np.nan, np.float32)
    undecoded: dict[str, str] = {}
    at = 0
    for found in _ahead(pictures.read(bundle, images, fit=encoder.fit, sandbox=sandbox)):
        right = np.zeros((len(found), height, width, 3), np.uint8)
        for place, one in enumerate(found):
            if isinstance(one, Undecoded):
                undecoded[images[at + place]] = one.reason
            elif one.shape != right.shape[1:]:
                undecoded[images[at + place]] = f"it was decoded to {list(one.shape)}"
            else:
                right[place] = one
        rows[at : at + len(found)] = _encoded(encoder, right)
        at += len(found)
        progress(at, len(images))
    for place, image in enumerate(images):
        if image in undecoded:
            rows[place] = np.nan
    return Computed(tuple(images), rows, encoder.header.identity(sha256), undecoded)


def _encoded(encoder: MobileNetV2, right: NDArray[np.uint8]) -> NDArray[np.float32]:
    size = encoder.batch
    parts = [encoder.features(right[at : at + size]) for at in range(0, len(right), size)]
    return np.concatenate(parts)


def _ahead(found: Iterator[Pixels | Undecoded]) -> Iterator[list[Pixels | Undecoded]]:
    with ThreadPoolExecutor(1) as other:
        coming = other.submit(lambda: list(islice(found, _AHEAD)))
        while some := coming.result():
            coming = other.submit(lambda: list(islice(found, _AHEAD)))
            yield some
