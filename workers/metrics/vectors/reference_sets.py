"""References of images as places in a list that has every different sentence once."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from service.contract.errors import MetricFailed
from workers.metrics.ngrams import Ints


def distinct(texts: Sequence[str]) -> tuple[list[str], Ints]:
    """Every different text once, and the place of each text among them."""
    place_of = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return list(place_of), np.array([place_of[text] for text in texts], np.int64)


def collect(references: Sequence[Sequence[str]]) -> tuple[list[str], Ints, Ints]:
    """Every different reference once; `sentences` (C), the place of each reference among them; and
    `images` (N+1): image i has the references from images[i] to images[i+1] in `sentences`.

    Raises MetricFailed if an image has no reference.
    """
    for image, captions in enumerate(references):
        if not captions:
            raise MetricFailed(f"image {image}: expected at least one reference, found none")
    texts, sentences = distinct([caption for captions in references for caption in captions])
    return texts, sentences, np.array([0, *accumulate(map(len, references))], np.int64)


def join_places(parts: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    """The places of several parts, whose lists have these sizes, in the lists one after another."""
    before = np.cumsum([0, *sizes])[:-1]
    return np.concatenate([part + at for part, at in zip(parts, before, strict=True)])


def join_offsets(parts: Sequence[Ints]) -> Ints:
    """The offsets of several parts, one after another."""
    return np.append(0, np.cumsum(np.concatenate([np.diff(part) for part in parts])))
