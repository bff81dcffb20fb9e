"""From the pictures of a bundle to features: the next pictures are decoded meanwhile."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from workers.inference import pictures
from workers.inference.encoders.mobilenet_v2 import MobileNetV2
from workers.inference.features import Computed
from workers.inference.pictures import Pixels, Undecoded
from workers.progress import Progress, silent

Encode = Callable[[NDArray[np.uint8]], NDArray[np.float32]]

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
    with _in_batches(encoder) as encoded:
        for found in _ahead(pictures.read(bundle, images, fit=encoder.fit, sandbox=sandbox)):
            right = np.zeros((len(found), height, width, 3), np.uint8)
            for place, one in enumerate(found):
                if isinstance(one, Undecoded):
                    undecoded[images[at + place]] = one.reason
                elif one.shape != right.shape[1:]:
                    undecoded[images[at + place]] = f"it was decoded to {list(one.shape)}"
                else:
                    right[place] = one
            rows[at : at + len(found)] = encoded(right)
            at += len(found)
            progress(at, len(images))
    for place, image in enumerate(images):
        if image in undecoded:
            rows[place] = np.nan
    return Computed(tuple(images), rows, encoder.header.identity(sha256), undecoded)


@contextmanager
def _in_batches(encoder: MobileNetV2) -> Iterator[Encode]:
    """The encoder for any number of pictures. On a CPU each thread has batches of its own: threads
    that share one wait for each other at every layer, and most where pictures are decoded beside.
    """
    size, threads = encoder.batch, torch.get_num_threads()
    many = threads if encoder.on_cpu else 1

    def parts(right: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
        return (right[at : at + size] for at in range(0, len(right), size))

    with ThreadPoolExecutor(many, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            yield lambda right: np.concatenate([*pool.map(encoder.features, parts(right))])
        finally:
            torch.set_num_threads(threads)


def _ahead(found: Iterator[Pixels | Undecoded]) -> Iterator[list[Pixels | Undecoded]]:
    with ThreadPoolExecutor(1) as other:
        coming = other.submit(lambda: list(islice(found, _AHEAD)))
        while some := coming.result():
            coming = other.submit(lambda: list(islice(found, _AHEAD)))
            yield some
