"""Greedy and beam search with a cached state, batched over images and beams.

This is the beam search of the pre-gen paper: complete hypotheses stay in the beam and compete by
their probability; an image is done when the best hypothesis of its beam is complete.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from service.contract.errors import UnusableCheckpoint
from service.contract.plan.tasks import size_decoding_block
from workers.inference.captioners import Captioner, CaptionerState
from workers.inference.features import Inputs
from workers.progress import Progress, ignore_progress

CHUNK_BYTES = {"cpu": 20_000_000, "cuda": 512_000_000}  # of logits in memory at the same time


@dataclass(frozen=True)
class DecodingOptions:
    """The defaults are the paper's. `length_power` 1 compares mean log-probabilities."""

    beam: int = 3
    min_words: int = 4  # END is not allowed earlier
    max_words: int = 50
    unk: bool = False
    length_power: float = 0.0

    def __post_init__(self) -> None:
        if self.beam < 1 or not 0 <= self.min_words <= self.max_words or self.max_words < 1:
            raise ValueError(f"expected beam >= 1 and 0 <= min_words <= max_words, found {self}")


@dataclass(frozen=True)
class DecodedCaption:
    """A caption's word ids without END, and the sum of the log-probabilities, END included."""

    words: tuple[int, ...]
    logp: float


@torch.inference_mode()
def decode_captions(
    model: Captioner,
    inputs: Inputs,
    options: DecodingOptions = DecodingOptions(),
    progress: Progress = ignore_progress,
) -> list[DecodedCaption]:
    """Decode a caption for each row of `inputs`."""
    model.check(inputs)
    captions: list[DecodedCaption] = []
    size = size_decoding_block(options.beam, options.max_words)
    within = _readable(options, model.tokens.most)
    for start in range(0, len(inputs), size):
        for part in range(start, min(start + size, len(inputs)), model.together):
            stop = min(part + model.together, start + size)
            block = torch.tensor(inputs[part:stop], device=model.device)
            captions += _PaperBeamSearch(model, block, within).run()
            progress(len(captions), len(inputs))
    return captions


def _readable(options: DecodingOptions, most: int | None) -> DecodingOptions:
    """Captions end where the model reads no further."""
    if most is None:
        return options
    return replace(
        options,
        min_words=min(options.min_words, most),
        max_words=min(options.max_words, most),
    )


def detokenize_caption(model: Captioner, caption: DecodedCaption) -> str:
    return model.tokens.text(caption.words)


class _PaperBeamSearch:
    """The search for a block of images. Hypotheses are (n, w): n unfinished images, beam w."""

    def __init__(self, model: Captioner, inputs: Tensor, options: DecodingOptions) -> None:
        self._model = model
        self._tokens = model.tokens
        self._options = options
        self._results: list[DecodedCaption | None] = [None] * len(inputs)
        n, w = len(inputs), options.beam
        device = inputs.device
        self._state: CaptionerState = model.select(
            model.begin(model.look(inputs)), torch.arange(n, device=device).repeat_interleave(w)
        )
        self._places = torch.arange(n, device=device)  # row -> image of the block
        self._logp = torch.full((n, w), -torch.inf, dtype=torch.float64, device=device)
        self._logp[:, 0] = 0.0
        self._complete = torch.zeros(n, w, dtype=torch.bool, device=device)
        self._words = torch.full((n, w, options.max_words), self._tokens.end, device=device)
        self._lengths = torch.zeros(n, w, dtype=torch.long, device=device)
        self._last = torch.full((n, w), self._tokens.start, device=device)
        self._chunk = max(1, CHUNK_BYTES[device.type] // (4 * self._tokens.size))

    def run(self) -> list[DecodedCaption]:
        for depth in range(self._options.max_words):
            self._advance(depth)
            self._drop_finished()
            if not len(self._places):
                break
        done = [caption for caption in self._results if caption is not None]
        assert len(done) == len(self._results)
        return done

    def _advance(self, depth: int) -> None:
        """Extend every incomplete hypothesis by a word, and keep the best `w` of each image."""
        w = self._options.beam
        rows = (~self._complete & self._logp.isfinite()).flatten().nonzero()[:, 0]
        logp, words, state = self._expand(rows, depth)
        grown = self._logp.new_full((len(self._places) * w, w), -torch.inf)
        grown[rows] = self._logp.flatten()[rows, None] + logp
        next_words = self._words.new_zeros(grown.shape)
        next_words[rows] = words
        kept = self._logp.masked_fill(~self._complete, -torch.inf)  # first, so that they win ties
        pool = torch.cat([kept, grown.view(-1, w * w)], dim=1)
        chosen = self._rank(pool, depth)[:, :w]
        parents = torch.where(chosen < w, chosen, (chosen - w) // w)
        added = next_words.view(-1, w * w).gather(1, (chosen - w).clamp(min=0))
        self._take(parents, rows, state)
        self._logp = pool.gather(1, chosen)
        self._grow(added, chosen >= w, depth)

    def _expand(self, rows: Tensor, depth: int) -> tuple[Tensor, Tensor, CaptionerState]:
        """The best words of each row and their log-probabilities, both (rows, w)."""
        hidden, state = self._model.step(
            self._model.select(self._state, rows), self._last.flatten()[rows]
        )
        logp, words = [], []
        for start in range(0, len(rows), self._chunk):
            logits = self._model.output(hidden[start : start + self._chunk])
            # Before the next lines exclude words.
            total = torch.logsumexp(logits, dim=1, keepdim=True)
            if depth < self._options.min_words:
                logits[:, self._tokens.end] = -torch.inf
            if not self._options.unk:
                for word in self._tokens.never:
                    logits[:, word] = -torch.inf
            best = logits.topk(min(self._options.beam, logits.shape[1]), dim=1)
            logp.append(best.values.double() - total)
            words.append(best.indices)
        found = torch.cat(logp)
        if found.isnan().any():
            raise UnusableCheckpoint(
                "the model's logits are not finite: "
                "its weights are too large for float32 arithmetic"
            )
        missing = self._options.beam - found.shape[1]  # a beam wider than the vocabulary
        pad = torch.nn.functional.pad
        return (
            pad(found, (0, missing), value=-torch.inf),
            pad(torch.cat(words), (0, missing)),
            state,
        )

    def _rank(self, pool: Tensor, depth: int) -> Tensor:
        """Indices into `pool` (kept hypotheses, then extended ones), the best first."""
        if self._options.length_power:
            tokens = torch.full_like(pool, depth + 1)
            tokens[:, : self._options.beam] = self._lengths + 1
            pool = pool / tokens**self._options.length_power
        return pool.sort(dim=1, descending=True, stable=True).indices

    def _take(self, parents: Tensor, rows: Tensor, state: CaptionerState) -> None:
        """Copy words, lengths and state of each new hypothesis from its parent."""
        self._words = self._words.gather(1, parents[:, :, None].expand_as(self._words))
        self._lengths = self._lengths.gather(1, parents)
        self._complete = self._complete.gather(1, parents)
        # Complete ones need no state: any row will do.
        places = parents.new_zeros(self._logp.numel())
        places[rows] = torch.arange(len(rows), device=rows.device)
        flat = (
            parents + self._options.beam * torch.arange(len(parents), device=rows.device)[:, None]
        )
        self._state = self._model.select(state, places[flat.flatten()])

    def _grow(self, added: Tensor, grown: Tensor, depth: int) -> None:
        ended = grown & (added == self._tokens.end)
        longer = grown & ~ended
        self._words[:, :, depth] = torch.where(longer, added, self._words[:, :, depth])
        self._lengths += longer
        self._last = added
        self._complete |= ended | (longer & (depth + 1 == self._options.max_words))

    def _drop_finished(self) -> None:
        stuck = self._logp[:, 0].isinf()  # no word is allowed here
        finished = self._complete[:, 0] | stuck
        rows = finished.nonzero()[:, 0]
        if not len(rows):
            return
        best = self._words[rows, 0], self._lengths[rows, 0], self._logp[rows, 0]
        done = (each.tolist() for each in (self._places[rows], *best))
        for place, words, length, logp in zip(*done, strict=True):
            self._results[place] = DecodedCaption(tuple(words[:length]), logp)
        going_on = (~finished).nonzero()[:, 0]
        w = self._options.beam
        flat = (going_on[:, None] * w + torch.arange(w, device=going_on.device)).flatten()
        self._state = self._model.select(self._state, flat)
        self._places = self._places[going_on]
        self._logp, self._complete = self._logp[going_on], self._complete[going_on]
        self._words, self._lengths = self._words[going_on], self._lengths[going_on]
        self._last = self._last[going_on]
