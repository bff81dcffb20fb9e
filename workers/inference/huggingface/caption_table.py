"""Captions as a network reads them behind pictures: in rows of their own, or beside each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from workers.inference.packing import Packed, copy_to_device

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ReadRows:
    """Words in rows, without START. `counts`: captions of each image; `firsts`: where the captions'
    first words stand in packed order; `places`: where the words of `is_real` stand there.
    """

    words: Tensor
    counts: Tensor
    firsts: Tensor
    is_real: Tensor  # numbers of the rows of a flat (n * m, width)
    places: Tensor
    times: Tensor
    sees: Tensor


@dataclass(frozen=True)
class CaptionTable:
    """Captions by their number: `places` of their words in packed order (C, L), -1 behind ends."""

    words: Tensor
    places: Ints
    images: Ints

    def split(self, images: Sequence[int], most: int) -> Iterator[ReadRows]:
        """Yield parts of the captions of these images, each caption in a row of its own."""
        row, caption = np.nonzero(np.array(images)[:, None] == self.images)
        for start in range(0, len(row), most):
            part = slice(start, start + most)
            chosen = self.places[caption[part]]
            width = int((chosen >= 0).sum(axis=1).max())
            counts = np.bincount(row[part], minlength=len(images))
            yield self._rows(counts, chosen[:, 0], chosen[:, 1:width], np.zeros((0, 0), np.int64))

    def pack(self, images: Sequence[int]) -> ReadRows:
        """Put the captions of each of these images beside each other in one row."""
        row, caption = np.nonzero(np.array(images)[:, None] == self.images)
        behind = self.places[caption, 1:]
        is_read = behind >= 0
        in_row = np.repeat(row, is_read.sum(axis=1))
        counts, width = np.bincount(row, minlength=len(images)), np.bincount(in_row, minlength=1)
        at = np.arange(len(in_row)) - np.concatenate([[0], np.cumsum(width)])[in_row]
        shape = (len(images), int(width.max()))
        places, number, times = (np.full(shape, -1) for _ in range(3))
        places[in_row, at] = behind[is_read]
        number[in_row, at], times[in_row, at] = np.nonzero(is_read)
        return self._rows(counts, self.places[caption, 0], places, number, times.clip(min=0))

    def _rows(
        self, counts: Ints, firsts: Ints, places: Ints, number: Ints, times: Ints | None = None
    ) -> ReadRows:
        times = number if times is None else times
        sees = (number[:, :, None] == number[:, None]) & (times[:, :, None] >= times[:, None])
        is_real = np.flatnonzero(places >= 0)
        given = (places.clip(min=0), counts, firsts, is_real, places.flat[is_real], times, sees)
        words, *others = (copy_to_device(each, self.words.device) for each in given)
        return ReadRows(self.words[words], *others)


def tabulate_captions(captions: Packed) -> CaptionTable:
    counts = np.array(captions.counts)
    is_there = np.arange(counts[0])[:, None] < counts
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    places = np.where(is_there, starts + np.arange(counts[0])[:, None], -1)
    return CaptionTable(captions.words, places, captions.image_rows.cpu().numpy())
