"""Packing of captions of different lengths: in the order in which an RNN reads them, without
padding, or those of an image in one row, as a Transformer reads them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.inference.vocabulary import EncodedCaptions

# Of a group, in the layers at once: on a CPU, so many that their activations fit caches.
GROUP_TOKENS = {"cpu": 512, "cuda": 2_048}


@dataclass(frozen=True)
class Packed:
    """Captions by descending length, tokens by time; the first counts[t] captions reach time t.

    words      (T)  the word read at each place: START, then the caption's own
    counts          as many as the longest caption has tokens
    image_rows (C)  the image that each caption belongs to
    places     (T)  where each token stands in the order of `EncodedCaptions.tokens`
    """

    words: Tensor
    counts: list[int]
    image_rows: Tensor
    places: NDArray[np.int64]


def copy_to_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """Copy the array to a device; the host does not wait for the work of the device."""
    return torch.from_numpy(array).to(device, non_blocking=True)


def pack_captions(
    encoded: EncodedCaptions, captions: NDArray[np.int64], device: torch.device
) -> Packed:
    """Pack captions (indices, any order); image rows count from the first image of `encoded`."""
    lengths = encoded.lengths[captions]
    order = np.argsort(-lengths, kind="stable")
    alive = len(lengths) - np.cumsum(np.bincount(lengths))[:-1]  # captions longer than t
    starts = encoded.caption_offsets[captions[order]]
    places = np.concatenate([starts[:count] + time for time, count in enumerate(alive)])
    words = encoded.tokens[places - 1]  # the token before; what is before the first is START
    words[: len(captions)] = encoded.start
    return Packed(
        words=copy_to_device(words, device),
        counts=[int(count) for count in alive],
        image_rows=copy_to_device(encoded.caption_images[captions[order]], device),
        places=places,
    )


def batch_captions(encoded: EncodedCaptions, max_tokens: int) -> list[NDArray[np.int64]]:
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


@dataclass(frozen=True)
class CaptionGroup:
    """Some images with all their captions' tokens: a row of tokens for each image."""

    images: Tensor  # (g)
    words: Tensor  # (g, m)
    times: Tensor  # (g, m)
    mask: Tensor  # (g, m, m)
    real: Tensor  # what is no padding, as rows of (g * m)
    places: Tensor  # where the real tokens stand in packed order


def group_captions(captions: Packed, most: int) -> list[CaptionGroup]:
    """Images with about as many tokens together, so that little is padded: at most `most` tokens,
    or one image.
    """
    device = captions.words.device
    counts = np.array(captions.counts)
    caption = np.concatenate([np.arange(count) for count in counts])
    time = np.repeat(np.arange(len(counts)), counts)
    image = captions.image_rows.cpu().numpy()[caption]
    order = np.lexsort((time, caption, image))
    there, starts, sizes = np.unique(image[order], return_index=True, return_counts=True)
    groups, by_size = [], np.argsort(-sizes, kind="stable")
    while len(by_size):
        many = max(1, most // int(sizes[by_size[0]]))
        chosen, by_size = by_size[:many], by_size[many:]
        columns = np.arange(sizes[chosen[0]])
        real = columns < sizes[chosen, None]
        places = order[np.where(real, starts[chosen, None] + columns, 0)]
        groups.append(_group(captions, there[chosen], places, real, caption, time, device))
    return groups


def _group(
    captions: Packed,
    images: NDArray[np.int64],
    places: NDArray[np.int64],
    real: NDArray[np.bool_],
    caption: NDArray[Any],
    time: NDArray[Any],
    device: torch.device,
) -> CaptionGroup:
    own = np.where(real, caption[places], -1)  # padding reads padding, so that no row is empty
    times = np.where(real, time[places], 0)
    mask = (own[:, :, None] == own[:, None, :]) & (times[:, :, None] >= times[:, None, :])
    return CaptionGroup(
        images=copy_to_device(images, device),
        words=captions.words[copy_to_device(places, device)],
        times=copy_to_device(times, device),
        mask=copy_to_device(mask, device),
        real=copy_to_device(np.flatnonzero(real), device),
        places=copy_to_device(places[real], device),
    )


class RowsByImage:
    """Rows (n, …) beside the others of their images: (images, width, …)."""

    def __init__(self, of: Tensor) -> None:
        # On the host, which would otherwise wait for the device several times.
        self.images, place, counts = np.unique(
            of.cpu().numpy(), return_inverse=True, return_counts=True
        )
        self.width = int(counts.max(initial=1))
        order = place.argsort(kind="stable")
        in_turn = np.arange(len(place))
        slots = np.empty_like(place)
        slots[order] = in_turn - (counts.cumsum() - counts)[place[order]]
        at = place * self.width + slots
        filled = len(at) == len(self.images) * self.width
        self._is_even = filled and np.array_equal(at, in_turn)  # nothing has to move
        self._at = copy_to_device(at, of.device)

    def rows(self, of_images: Tensor, part: slice = slice(None)) -> Tensor:
        """Those of a part of the images; not copied where no image between them is left out."""
        images = self.images[part]
        if not len(images):
            return of_images[:0]
        first, last = int(images[0]), int(images[-1])
        all_are_there = last - first + 1 == len(images)
        if all_are_there:
            return of_images[first : last + 1]
        return of_images[copy_to_device(images, of_images.device)]

    def spread(self, rows: Tensor) -> Tensor:
        if not self._is_even:
            empty = rows.new_zeros(len(self.images) * self.width, *rows.shape[1:])
            rows = empty.index_copy(0, self._at, rows)
        return rows.view(-1, self.width, *rows.shape[1:])

    def back(self, spread: Tensor) -> Tensor:
        rows = spread.flatten(0, 1)
        return rows if self._is_even else rows[self._at]
