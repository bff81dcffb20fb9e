"""Captioner of a library's encoder of pictures and our stack over its decoder's layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from service.contract.formats.huggingface import TransformersCaptioner
from workers.inference.captioners import GenerationOptions
from workers.inference.devices import Product
from workers.inference.features import Inputs
from workers.inference.huggingface import decoder_stack
from workers.inference.huggingface.decoder_stack import Decoder, DecoderState
from workers.inference.packing import GROUP_TOKENS, Packed, group_captions
from workers.inference.pieces import PieceTokens
from workers.inference.preprocessing import PicturePreparation

# Places of pictures in the encoder at once: on a CPU, so many that their activations fit caches.
_PLACES = {"cpu": 1_000, "cuda": 20_000}
_SEARCHED_BYTES = 512_000_000  # of images' keys and values in a search


@dataclass(frozen=True)
class EncoderAndDecoder:
    """`encoder` takes `pixel_values` (n, 3, h, w) to what the decoder's `images` takes. `network`:
    the library's, of whose layers both are made.
    """

    encoder: nn.Module
    decoder: Decoder
    network: Any


class HuggingFaceCaptioner:
    """Reads pieces of words, and pictures. Ranks are those of float32, in which an image's
    encoder differs by its last bits from batch to batch; `columns` and prefixes come of one pass.
    """

    settles = False
    walks = False  # most of the task is the encoder's
    encoder = None
    batch_tokens = 65_536

    def __init__(
        self,
        parts: EncoderAndDecoder,
        tokens: PieceTokens,
        preparation: PicturePreparation,
        search: GenerationOptions,
        judged: TransformersCaptioner,
    ) -> None:
        self.judged = judged
        self.tokens = tokens
        self.search = search
        self.preparation = preparation
        self.network = parts.network
        self._encoder, self._decoder = parts.encoder, parts.decoder
        weight, bias = parts.decoder.weight.detach(), parts.decoder.bias
        self.output = Product(weight.t(), None if bias is None else bias.detach())
        self.device = weight.device
        self._pictures = 1  # in the encoder at once
        places, size = self._of_one_image()
        self._pictures = max(1, _PLACES[self.device.type] // places)
        self.together = max(1, min(128, _SEARCHED_BYTES // size))

    def pack_again(self) -> None:
        """Take over the values that the network's weights have now."""
        self.output.pack_again()

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        return self.preparation.inputs(bundle, images)

    def draw_sample(self) -> Inputs:
        """A black picture, to try the captioner with."""
        return np.zeros((1, *self.preparation.shape), np.uint8)

    def check(self, inputs: Inputs) -> None:
        self.preparation.check(inputs)

    def look(self, inputs: Tensor) -> Tensor:
        seen = [
            self._encoder(self.preparation.normalised(part))
            for part in torch.split(inputs, self._pictures)
        ]
        return torch.cat(seen)

    def hidden(self, images: Tensor, captions: Packed) -> Tensor:
        found: Tensor | None = None
        for group in group_captions(captions, GROUP_TOKENS[images.device.type]):
            there = decoder_stack.read_words(
                self._decoder, images[group.images], group.words, group.times, group.mask
            )
            rows = there.flatten(0, 1)[group.real]
            if found is None:
                found = rows.new_empty(len(captions.words), rows.shape[1])
            found[group.places] = rows
        assert found is not None
        return found

    def begin(self, images: Tensor) -> DecoderState:
        return decoder_stack.begin_state(self._decoder, images)

    def step(self, state: DecoderState, words: Tensor) -> tuple[Tensor, DecoderState]:
        return decoder_stack.read_next_words(self._decoder, state, words)

    def select(self, state: DecoderState, rows: Tensor) -> DecoderState:
        return decoder_stack.select_rows(state, rows)

    @torch.inference_mode()
    def _of_one_image(self) -> tuple[int, int]:
        """Places of one image, and the bytes of its keys and values in all layers."""
        seen = self.look(torch.zeros((1, *self.preparation.shape), device=self.device))
        pairs = self._decoder.images(seen)
        return seen.shape[1], sum(each.nbytes for pair in pairs for each in pair)

    def exact(self) -> NoReturn:
        raise NotImplementedError("near ties of Transformers are not settled")
