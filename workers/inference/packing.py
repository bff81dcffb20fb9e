"""Captions of different lengths in the order in which an RNN reads them, without padding."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.inference.vocabulary import Encoded


@dataclass(frozen=True)
class Packed:
    """Captions by descending length, tokens by time; the first counts[t] captions reach time t.

    words      (T)  the word read at each place: START, then the caption's own
    counts          as many as the longest caption has tokens
    image_rows (C)  the image that each caption belongs to
    places     (T)  where each token stands in the order of `Encoded.tokens`
    """

    words: Tensor
    counts: list[int]
    image_rows: Tensor
    places: NDArray[np.int64]


def pack(encoded: Encoded, captions: NDArray[np.int64], device: torch.device) -> Packed:
    """Pack captions (indices, any order); image rows count from the first image of `encoded`."""
    lengths = encoded.lengths[captions]
    order = np.argsort(-lengths, kind="stable")
    alive = len(lengths) - np.cumsum(np.bincount(lengths))[:-1]  # captions longer than t
    starts = encoded.caption_offsets[captions[order]]
    places = np.concatenate([starts[:count] + time for time, count in enumerate(alive)])
    words = encoded.tokens[places - 1]  # the token before; what is before the first is START
    words[: len(captions)] = encoded.start
    return Packed(
        words=torch.from_numpy(words).to(device),
        counts=[int(count) for count in alive],
        image_rows=torch.from_numpy(encoded.caption_images[captions[order]]).to(device),
        places=places,
    )


def batches(encoded: Encoded, max_tokens: int) -> list[NDArray[np.int64]]:
    """Batches of captions, the longest first, of at most `max_tokens` tokens each."""
    lengths = encoded.lengths
    order = np.argsort(-lengths, kind="stable")
    result, start, tokens = [], 0, 0
    for index, length in enumerate(lengths[order]):
        if tokens and tokens + length > max_tokens:
            result.append(order[start:index])
            start, tokens = index, 0
        tokens += length
    return [*result, order[start:]] if start < len(order) else result
