"""Exact ranks where two logits nearly tie.

The last bits of a float32 product depend on its number of rows, on the kernel and on the device.
Where the logits of the reference word and of the best other word are closer than this error, the
rank is computed again in float64. So "rank 0" means the same in columns and prefix walk, in fp32
and bf16, on every device and in every batch.
"""

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.inference.captioners import Captioner
from workers.inference.devices import Product
from workers.inference.features import Inputs
from workers.inference.packing import batch_captions, pack_captions
from workers.inference.vocabulary import CaptionSubset, EncodedCaptions

_BATCH_TOKENS = 4_096
_ROWS, _WORDS = 1_024, 2_048  # of float64 logits in memory at the same time: 17 MB
_TIE = 2.0**-40  # of the largest possible logit; float64 products differ by far less


@dataclass(frozen=True)
class TieMargin:
    """The largest error of the difference of two computed logits of one row."""

    relative: float  # of |h| times the weight's longest column (Cauchy-Schwarz)
    longest: float
    bias: float

    def of(self, hidden: Tensor) -> Tensor:
        """The margin of each row: (n, o) -> (n)."""
        if self is NOTHING_IS_NEAR:
            return hidden.new_full((len(hidden),), -math.inf)
        largest: Tensor = hidden.float().norm(dim=1) * self.longest + self.bias
        return largest * self.relative


NOTHING_IS_NEAR = TieMargin(0.0, 0.0, 0.0)


def find_margin(model: Captioner) -> TieMargin:
    """Find the model's margin in float32; nothing is near where the model does not settle ties."""
    return (
        compute_margin(get_output_product(model), torch.float32)
        if model.settles
        else NOTHING_IS_NEAR
    )


def get_output_product(model: Captioner) -> Product:
    """The output layer of a model that settles near ties."""
    return cast("Product", model.output)


def compute_margin(output: Product, dtype: torch.dtype) -> TieMargin:
    """float32: the worst case of a long sum. bf16: both factors and the result are rounded."""
    size = max(output.weight.shape[0], 64)
    relative = size * 2.0**-23 if dtype == torch.float32 else 2 * (2.0**-8 + 2.0**-9)
    longest = float(output.weight.norm(dim=0).max())
    bias = 0.0 if output.bias is None else float(output.bias.abs().max())
    return TieMargin(relative, longest, bias if dtype == torch.float32 else 0.0)


def find_near_ties(targets: Tensor, best: Tensor, margins: Tensor) -> Tensor:
    """Rows where errors decide whether the target logit is the largest. `best` (n, 2): top 2."""
    first, second = best[:, 0], best[:, 1]
    close = targets >= first - margins
    rival_close = (targets < first) | (second >= first - margins)
    return close & rival_close


def decide_ranks(
    model: Captioner,
    inputs: Inputs,
    encoded: EncodedCaptions,
    tokens: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rank each of `tokens` (sorted) in float64, and find the best word there (lowest id)."""
    ranks, firsts = np.zeros_like(tokens), np.zeros_like(tokens)
    if not len(tokens):
        return ranks, firsts
    chosen = encoded.subset(
        np.unique(np.searchsorted(encoded.caption_offsets, tokens, side="right") - 1)
    )
    hidden = _hidden(model.exact(), inputs, chosen)
    where = np.searchsorted(chosen.tokens, tokens)
    for start in range(0, len(tokens), _ROWS):
        rows = slice(start, start + _ROWS)
        targets = torch.from_numpy(encoded.tokens[tokens[rows]]).to(hidden.device)
        found = _rank(hidden[torch.from_numpy(where[rows])], targets, get_output_product(model))
        ranks[rows], firsts[rows] = (result.cpu().numpy() for result in found)
    return ranks, firsts


def _hidden(model: Captioner, inputs: Inputs, chosen: CaptionSubset) -> Tensor:
    parts, size = [], max(1, model.together // 4)  # float64 takes more memory
    for start in range(0, len(chosen.images), size):
        part = chosen.captions.part(start, min(start + size, len(chosen.images)))
        looked = torch.tensor(inputs[chosen.images[start:][: part.images]], device=model.device)
        parts.append(_hidden_together(model, model.look(looked), part))
    return torch.cat(parts)


def _hidden_together(model: Captioner, images: Any, captions: EncodedCaptions) -> Tensor:
    hidden: Tensor | None = None
    for batch in batch_captions(captions, _BATCH_TOKENS):
        packed = pack_captions(captions, batch, images.device)
        rows = model.hidden(images, packed)
        if hidden is None:
            hidden = rows.new_empty(len(captions.tokens), rows.shape[1])
        hidden[torch.from_numpy(packed.places)] = rows
    assert hidden is not None
    return hidden


def _rank(hidden: Tensor, targets: Tensor, output: Product) -> tuple[Tensor, Tensor]:
    bias = output.weight.new_zeros(output.weight.shape[1]) if output.bias is None else output.bias
    own = (hidden * output.weight[:, targets].T.double()).sum(1) + bias[targets].double()
    longest = float(output.weight.norm(dim=0).max())
    tie = _TIE * (hidden.norm(dim=1) * longest + float(bias.abs().max()))
    rank = torch.zeros_like(targets)
    best, first = own - torch.inf, torch.zeros_like(targets)
    for start in range(0, output.weight.shape[1], _WORDS):
        words = slice(start, start + _WORDS)
        logits = torch.addmm(bias[words].double(), hidden, output.weight[:, words].double())
        rank += (logits > (own + tie)[:, None]).sum(1)
        highest = logits.max(1).values
        lowest_id = (logits >= (highest - tie)[:, None]).int().argmax(1) + start
        better = highest > best + tie
        best = torch.where(better, highest, best)
        first = torch.where(better, lowest_id, first)
    return rank, first
