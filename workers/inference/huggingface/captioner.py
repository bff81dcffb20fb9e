"""Captioner of a library's encoder of pictures and our stack over its decoder's layers."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import torch
from torch import Tensor, nn

from service.contract.errors import InvalidPackage
from service.contract.formats.huggingface import TransformersCaptioner
from service.contract.formats.huggingface.family import MOST_PROMPT
from service.contract.formats.huggingface.rotary import LlavaSchema, PaliGemmaSchema
from workers.inference.captioners import GenerationOptions
from workers.inference.devices import Product
from workers.inference.features import Inputs
from workers.inference.huggingface import decoder_stack
from workers.inference.huggingface.decoder_stack import Decoder, DecoderState
from workers.inference.packing import GROUP_TOKENS, Packed, group_captions
from workers.inference.pieces import PieceTokens
from workers.inference.preprocessing import PicturePreparation

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Places of pictures in the encoder at once: on a CPU, so many that their activations fit caches.
_PLACES = {"cpu": 1_000, "cuda": 20_000}
_SEARCHED_BYTES = 512_000_000  # of images' keys and values in a search


@dataclass(frozen=True)
class EncoderAndDecoder:
    """`encoder` takes `pixel_values` (n, 3, h, w) to what the decoder's `images` takes.
    `read_after` makes a decoder over the same layers that reads another prompt, if one is read.
    """

    encoder: nn.Module
    decoder: Decoder
    read_after: "Callable[[Prompt], Decoder] | None" = None


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
        self._encoder, self._decoder = parts.encoder, parts.decoder
        self._read_after = parts.read_after
        weight, bias = parts.decoder.weight.detach(), parts.decoder.bias
        self.output = Product(weight.t(), None if bias is None else bias.detach())
        self.device = weight.device
        self._pictures = 1  # in the encoder at once
        places, size = self._of_one_image()
        self._pictures = max(1, _PLACES[self.device.type] // places)
        self.together = _count_searched(size)

    def with_prompt(self, text: str) -> "HuggingFaceCaptioner":
        """The captioner over the same weights that reads this text before a caption, in the place
        of the prompt that it has. Raises InvalidPackage where the text does not fit.
        """
        return copy.copy(self)._set_prompt(text)  # noqa: SLF001  of its own class

    def _set_prompt(self, text: str) -> "HuggingFaceCaptioner":
        assert self._read_after is not None
        self.judged = replace(self.judged, prompt=text)
        prompt = encode_prompt(self.tokens.tokenizer, self.judged)
        self.tokens = replace(self.tokens, start=prompt.start)
        self._decoder = self._read_after(prompt)
        self.together = _count_searched(self._of_one_image()[1])
        return self

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        return self.preparation.inputs(bundle, images)

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


def _count_searched(image_bytes: int) -> int:
    """Count the images that are searched together."""
    return max(1, min(128, _SEARCHED_BYTES // image_bytes))


@dataclass(frozen=True)
class Prompt:
    """Ids of pieces before and after the `picture` places of one; the last is START."""

    before: tuple[int, ...]
    picture: int
    after: tuple[int, ...]

    @property
    def start(self) -> int:
        return self.after[-1]


def encode_prompt(tokenizer: "Tokenizer", judged: TransformersCaptioner) -> Prompt:
    family, text = judged.family, judged.prompt
    if text is None:
        return Prompt((), 0, (judged.start,))
    if isinstance(family, PaliGemmaSchema):
        ids = tokenizer.encode(f"{text}\n", add_special_tokens=False).ids
        _check(text, ids, marks=(ids.count(family.image_token_index), 0))
        return Prompt((), family.vision_config.places, (judged.start, *ids))
    assert isinstance(family, LlavaSchema)
    ids = tokenizer.encode(text).ids
    _check(text, ids, marks=(ids.count(family.image_token_index), 1))
    at = ids.index(family.image_token_index)
    if at == len(ids) - 1:
        raise InvalidPackage(f"the prompt {text!r:.60}: expected words after the mark of a picture")
    return Prompt(tuple(ids[:at]), family.picture, tuple(ids[at + 1 :]))


def _check(text: str, ids: list[int], marks: tuple[int, int]) -> None:
    if not 1 <= len(ids) < MOST_PROMPT:
        raise InvalidPackage(
            f"the prompt {text!r:.60} has {len(ids)} pieces: expected from 1 to {MOST_PROMPT - 1}"
        )
    found, expected = marks
    if found != expected:
        raise InvalidPackage(
            f"the prompt {text!r:.60} has {found} marks of a picture, the piece "
            f"image_token_index: expected {expected}"
        )
