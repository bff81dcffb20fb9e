"""Computes columns from a captioner and references: one forward pass, in chunks of logits.

Images are computed in fixed blocks of consecutive images; a block's captions are batched by length
and projected to the vocabulary a few hundred rows at a time. A shard is whole blocks, so sharding
cannot change a batch: columns are equal to the last bit however they were sharded.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prescore.models.choices import Precision
from service.contract.errors import CheckpointMismatch, UnusableCheckpoint
from service.contract.plan.tasks import BLOCK_IMAGES
from workers.inference import near_ties
from workers.inference.captioners import Captioner
from workers.inference.captioners.protocol import OutputLayer
from workers.inference.columns import ProbabilityColumns, choose_index_type
from workers.inference.devices import Product, supports_bf16
from workers.inference.features import Inputs
from workers.inference.inputs import load_inputs
from workers.inference.packing import batch_captions, copy_to_device, pack_captions
from workers.inference.vocabulary import EncodedCaptions
from workers.progress import Progress, ignore_progress

# Of one chunk of logits; a second chunk is scratch space.
LOGITS_BYTES = {"cpu": 10_000_000, "cuda": 256_000_000}


@dataclass(frozen=True)
class ScoringOptions:
    precision: Precision = "fp32"
    top: int = 1
    entropy: bool = False


@torch.inference_mode()
def compute_columns(
    model: Captioner,
    inputs: Inputs,
    encoded: EncodedCaptions,
    options: ScoringOptions = ScoringOptions(),
    progress: Progress = ignore_progress,
) -> ProbabilityColumns:
    """Teacher forcing of every caption. `inputs` has a row for each image of `encoded`."""
    check_inputs(model, inputs, encoded)
    scorer = _ColumnScorer(model, options)
    rows = _ColumnRows.empty(len(encoded.tokens), scorer.top, with_entropy=options.entropy)
    for start in range(0, encoded.images, BLOCK_IMAGES):
        end = min(start + BLOCK_IMAGES, encoded.images)
        first = encoded.caption_offsets[encoded.image_offsets[start]]
        scorer.block(inputs[start:end], encoded.part(start, end), rows, first)
        progress(end, encoded.images)
    if np.isnan(rows.logp).any():
        raise UnusableCheckpoint(
            "the model's logits are not finite: its weights are too large for float32 arithmetic"
        )
    if model.settles:
        _settle_near_ties(model, inputs, encoded, rows)
    index = choose_index_type(model.tokens.size)
    return ProbabilityColumns(
        logp=rows.logp,
        rank=rows.rank.astype(index),
        caption_offsets=encoded.caption_offsets,
        image_offsets=encoded.image_offsets,
        top_ids=rows.top_ids.astype(index),
        top_logp=rows.top_logp,
        entropy=rows.entropy,
    )


def check_inputs(model: Captioner, inputs: Inputs, encoded: EncodedCaptions) -> None:
    """Raise CheckpointMismatch unless model, images and references belong together."""
    model.check(inputs)
    if len(inputs) != encoded.images:
        raise CheckpointMismatch(
            f"expected a row of features for each of {encoded.images} images, found {len(inputs)}"
        )
    words = model.tokens.size
    if len(encoded.tokens) and int(encoded.tokens.max()) >= words:
        raise CheckpointMismatch(
            f"the references contain word id {encoded.tokens.max()}, the vocabulary has {words} "
            "words: they were encoded with another checkpoint's vocabulary"
        )


def count_chunk_rows(model: Captioner) -> int:
    """Rows of logits in memory at the same time."""
    return max(1, LOGITS_BYTES[model.device.type] // (4 * model.tokens.size))


@dataclass
class _ColumnRows:
    """Unfinished columns; `near` marks tokens whose rank is a near tie."""

    logp: NDArray[np.float32]
    rank: NDArray[np.int64]
    top_ids: NDArray[np.int64]
    top_logp: NDArray[np.float32]
    entropy: NDArray[np.float32] | None
    near: NDArray[np.bool_]

    @classmethod
    def empty(cls, tokens: int, top: int, *, with_entropy: bool) -> "_ColumnRows":
        return cls(
            logp=np.empty(tokens, np.float32),
            rank=np.empty(tokens, np.int64),
            top_ids=np.empty((tokens, top), np.int64),
            top_logp=np.empty((tokens, top), np.float32),
            entropy=np.empty(tokens, np.float32) if with_entropy else None,
            near=np.empty(tokens, np.bool_),
        )


@dataclass
class _ChunkColumns:
    """The results of one chunk, still on the device."""

    logp: Tensor
    rank: Tensor
    top_ids: Tensor
    top_logp: Tensor
    entropy: Tensor | None
    near: Tensor


class _ColumnScorer:
    def __init__(self, model: Captioner, options: ScoringOptions) -> None:
        self._model = model
        self._options = options
        self._device = model.device
        self.top = min(options.top, model.tokens.size)
        self._chunk = count_chunk_rows(model)
        self._scratch = torch.empty(self._chunk, model.tokens.size, device=model.device)
        self._margin = near_ties.find_margin(model)
        self._half = (
            _HalfPrecision(model.output, self._chunk) if options.precision == "bf16" else None
        )

    def block(self, inputs: Any, encoded: EncodedCaptions, rows: _ColumnRows, first: int) -> None:
        """Score one block, whose first token is row `first` of `rows`."""
        images = self._model.look(load_inputs(inputs, self._device))
        for batch in batch_captions(encoded, self._model.batch_tokens):
            packed = pack_captions(encoded, batch, self._device)
            hidden = self._model.hidden(images, packed)
            targets = copy_to_device(encoded.tokens[packed.places], self._device)
            chunks = [
                self._judge(hidden[at : at + self._chunk], targets[at : at + self._chunk])
                for at in range(0, len(targets), self._chunk)
            ]
            _put(rows, first + packed.places, chunks)

    def _judge(self, hidden: Tensor, targets: Tensor) -> _ChunkColumns:
        if self._half is None:
            return self._epilogue(self._model.output(hidden), targets, self._margin.of(hidden))
        logits = self._half.logits(hidden, targets)
        judged = self._epilogue(logits, targets, self._half.margin.of(hidden))
        redo = judged.near.nonzero()[:, 0]
        if len(redo):
            hidden, targets = hidden[redo], targets[redo]
            again = self._epilogue(self._model.output(hidden), targets, self._margin.of(hidden))
            for name, value in vars(again).items():
                if value is not None:
                    getattr(judged, name)[redo] = value
        return judged

    def _epilogue(self, logits: Tensor, targets: Tensor, margins: Tensor) -> _ChunkColumns:
        """All columns of a chunk of logits (n, V), which are overwritten."""
        own = logits.gather(1, targets[:, None])
        best, ids = logits.topk(max(2, self.top), dim=1)
        scratch = self._scratch[: len(logits)]
        total = torch.sub(logits, best[:, :1], out=scratch).exp_().sum(1).log_() + best[:, 0]
        entropy = _entropy(logits, total) if self._options.entropy else None
        larger = torch.gt(logits, own, out=logits).sum(1)  # as 0.0 and 1.0: exact below 2^24
        return _ChunkColumns(
            logp=(own[:, 0] - total).clamp(max=0),
            rank=larger.long(),
            top_ids=ids[:, : self.top],
            top_logp=(best[:, : self.top] - total[:, None]).clamp(max=0),
            entropy=entropy,
            near=near_ties.find_near_ties(own[:, 0], best, margins),
        )


class _HalfPrecision:
    """The projection in bf16, but the reference word's logit in float32.

    Hardware without bf16 multiplies the rounded numbers in float32: no faster, but the same result.
    """

    def __init__(self, output: OutputLayer, rows: int) -> None:
        if not isinstance(output, Product):
            raise CheckpointMismatch(
                "bf16 is the precision of the last matrix product, and this checkpoint gives "
                "logits in the precision of its own: ask for fp32"
            )
        self._dtype = torch.bfloat16 if supports_bf16(output.weight.device) else torch.float32
        self._product = Product(output.weight.bfloat16().to(self._dtype))
        columns = output.weight.shape[1]
        self._bias = output.weight.new_zeros(columns) if output.bias is None else output.bias
        self._logits = output.weight.new_empty(rows, columns)
        self._words = output.weight.t().contiguous()
        self.margin = near_ties.compute_margin(output, torch.bfloat16)

    def logits(self, hidden: Tensor, targets: Tensor) -> Tensor:
        rounded = self._product(hidden.bfloat16().to(self._dtype)).bfloat16()
        logits = torch.add(rounded, self._bias, out=self._logits[: len(hidden)])  # in float32
        own = (hidden * self._words[targets]).sum(1) + self._bias[targets]
        return logits.scatter_(1, targets[:, None], own[:, None])


def _entropy(logits: Tensor, total: Tensor) -> Tensor:
    logp = logits - total[:, None]
    return -(logp.exp() * logp).sum(1)


def _put(rows: _ColumnRows, places: NDArray[np.int64], chunks: list[_ChunkColumns]) -> None:
    """Copy a batch's results to the host: it waits for the device once for each field."""
    for name, column in vars(rows).items():
        if column is not None:
            values = torch.cat([getattr(chunk, name) for chunk in chunks])
            column[places] = values.cpu().numpy()


def _settle_near_ties(
    model: Captioner, inputs: Inputs, encoded: EncodedCaptions, rows: _ColumnRows
) -> None:
    tokens = rows.near.nonzero()[0]
    rank, first = near_ties.decide_ranks(model, inputs, encoded, tokens)
    rows.rank[tokens] = rank
    for token, word in zip(tokens, first, strict=True):
        others = rows.top_ids[token]
        others[others == word] = others[0]  # swap, if the word was further down
        others[0] = word
