"""The greedy prefix walk: 84 of the pre-gen scores from a few steps an image.

A caption's `prefix0` ends at the first word that is not the model's most probable word. So the
model decodes greedily, all images at once, and an image is finished when the prefixes of all its
references have ended: on COCO after about 3 steps an image, where columns take 57. Near ties are
computed in float64, as in columns; so both results are always equal.

For a model whose images cost more than its words (`walks` is False) prefixes are read off columns.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.inference import near_ties, scoring
from workers.inference.captioners import Captioner
from workers.inference.columns import ProbabilityColumns
from workers.inference.features import Inputs
from workers.inference.inputs import load_inputs
from workers.inference.packing import copy_to_device
from workers.inference.vocabulary import EncodedCaptions
from workers.progress import Progress, ignore_progress

BLOCK_IMAGES = 1024  # steps are few and cheap, so products may be larger than in scoring


@torch.inference_mode()
def walk_prefixes(
    model: Captioner,
    inputs: Inputs,
    encoded: EncodedCaptions,
    progress: Progress = ignore_progress,
) -> NDArray[np.int64]:
    """The length of each caption's prefix of rank-0 tokens, END counted like any other."""
    if not model.walks:
        return read_prefixes(scoring.compute_columns(model, inputs, encoded, progress=progress))
    scoring.check_inputs(model, inputs, encoded)
    walker = _Walker(model)
    prefixes = np.zeros(len(encoded.lengths), np.int64)
    undecided = np.zeros(len(prefixes), np.bool_)
    size = min(BLOCK_IMAGES, model.together)
    for start in range(0, encoded.images, size):
        end = min(start + size, encoded.images)
        captions = slice(encoded.image_offsets[start], encoded.image_offsets[end])
        found = walker.block(inputs[start:end], encoded.part(start, end))
        prefixes[captions], undecided[captions] = found
        progress(end, encoded.images)
    if model.settles:
        _settle(model, inputs, encoded, prefixes, undecided.nonzero()[0])
    return prefixes


class _Walker:
    def __init__(self, model: Captioner) -> None:
        self._model = model
        self._device = model.device
        self._chunk = 2 * scoring.count_chunk_rows(
            model
        )  # scoring needs a second buffer, this does not
        self._margin = near_ties.find_margin(model)

    def block(
        self, inputs: Any, encoded: EncodedCaptions
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Prefix lengths, and which captions have a near tie."""
        prefixes = np.zeros(len(encoded.lengths), np.int64)
        undecided = np.zeros(len(prefixes), np.bool_)
        images = self._model.look(load_inputs(inputs, self._device))
        state = self._model.begin(images)
        captions = np.arange(len(prefixes))  # those whose prefix has not ended
        rows = encoded.caption_images  # the row of each of these captions: at first, its image
        words = torch.full((len(images),), encoded.start, device=self._device)
        depth = 0
        while len(captions):
            hidden, state = self._model.step(state, words)
            targets = encoded.tokens[encoded.caption_offsets[captions] + depth]
            hit, close = self._judge(hidden, rows, targets)
            undecided[captions[close]] = True
            depth += 1
            prefixes[captions[hit]] = depth
            going_on = hit & (encoded.lengths[captions] > depth)
            captions = captions[going_on]
            kept, first, rows = np.unique(rows[going_on], return_index=True, return_inverse=True)
            words = copy_to_device(targets[going_on][first], self._device)
            state = self._model.select(state, copy_to_device(kept, self._device))
        return prefixes, undecided

    def _judge(
        self, hidden: Tensor, rows: NDArray[np.int64], targets: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Decide for each caption: is its next word the model's best word, and is it a near tie.

        `rows` ascend, since captions are in the order of their images.
        """
        hit, close = np.empty(len(rows), np.bool_), np.empty(len(rows), np.bool_)
        for start in range(0, len(hidden), self._chunk):
            chunk = hidden[start : start + self._chunk]
            logits = self._model.output(chunk)
            best = logits.topk(2, dim=1).values
            margins = self._margin.of(chunk)
            part = slice(*np.searchsorted(rows, [start, start + self._chunk]))
            row = copy_to_device(rows[part] - start, self._device)
            own = logits[row, copy_to_device(targets[part], self._device)]
            near = near_ties.find_near_ties(own, best[row], margins[row])
            close[part] = near.cpu().numpy()
            hit[part] = ((own >= best[row, 0]) & ~near).cpu().numpy()
        return hit, close


def read_prefixes(columns: ProbabilityColumns) -> NDArray[np.int64]:
    """Count each caption's hits before its first miss, from columns that are there already."""
    misses = np.append(np.flatnonzero(columns.rank), len(columns.rank))
    starts, ends = columns.caption_offsets[:-1], columns.caption_offsets[1:]
    found: NDArray[np.int64] = np.minimum(misses[np.searchsorted(misses, starts)], ends) - starts
    return found


def _settle(
    model: Captioner,
    inputs: Inputs,
    encoded: EncodedCaptions,
    prefixes: NDArray[np.int64],
    captions: NDArray[np.int64],
) -> None:
    """Compute the prefixes of these few captions again in float64."""
    subset = encoded.subset(captions)
    rank, _ = near_ties.decide_ranks(model, inputs, encoded, subset.tokens)
    starts = subset.captions.caption_offsets[:-1]
    for caption, start, length in zip(captions, starts, subset.captions.lengths, strict=True):
        hits = rank[start : start + length] == 0
        prefixes[caption] = np.logical_and.accumulate(hits).sum()
