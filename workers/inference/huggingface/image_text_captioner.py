"""Captioner of a network that transformers calls image-text-to-text."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, NoReturn

import torch
from torch import Tensor

from service.contract.errors import CheckpointMismatch, ConfigInvalid, UnusableCheckpoint
from service.contract.formats.huggingface import TransformersCaptioner
from workers.inference.captioners import GenerationOptions
from workers.inference.features import Inputs
from workers.inference.huggingface import library
from workers.inference.huggingface.caption_table import tabulate_captions
from workers.inference.huggingface.image_text_reader import (
    ImageTextReader,
    LogitChange,
    ReadPrompts,
    count_cache_bytes,
)
from workers.inference.huggingface.prompted_pictures import (
    Prepare,
    ProcessorChild,
    PromptedPictures,
    SamplePicture,
)
from workers.inference.huggingface.search_options import make_search
from workers.inference.inputs import NetworkInputs
from workers.inference.packing import Packed
from workers.inference.pieces import PieceTokens
from workers.inference.vocabulary import CaptionerTokens

OpenProcessor = Callable[[str], ProcessorChild]  # for a prompt

# Of the caches of captions that are read together, and of images in a search.
_CACHE_BYTES = {"cpu": 256_000_000, "cuda": 4_000_000_000}
# Pictures of one shape that are read together, and those of a search.
_PICTURES = {"cpu": 1, "cuda": 16}
_SEARCHED = {"cpu": 32, "cuda": 128}


class WritingState(NamedTuple):
    """State of a search; `is_new`: the prompt's last token, which comes first, is read already."""

    read: ReadPrompts
    is_new: bool


class ImageTextCaptioner:
    """Ranks are those of float32. The prompt of an image is read with it, in `hidden` or `begin`;
    `look` only hands on what they read. START is the prompt's last token.
    """

    settles = False
    walks = False  # most of the task is the picture's
    encoder = None
    batch_tokens = 1 << 20  # so that an image is read once for all its captions

    def __init__(
        self,
        reader: ImageTextReader,
        tokens: CaptionerTokens,
        search: GenerationOptions,
        judged: TransformersCaptioner,
        prepare: Prepare,
        row_bytes: int,
        connect: Callable[[str], "ImageTextCaptioner"],
    ) -> None:
        self.tokens, self.search, self.judged = tokens, search, judged
        self._prompted: dict[str, ImageTextCaptioner] = {}
        self._connect = connect
        self.output = reader.logits if reader.change != LogitChange() else reader.product
        self.device = reader.device
        self._reader, self._prepare = reader, prepare
        self.network = reader.network
        self._pictures = 1 if reader.reads_one_picture else _PICTURES[self.device.type]
        self._rows = max(1, _CACHE_BYTES[self.device.type] // row_bytes)
        most = 1 if reader.reads_one_picture else _SEARCHED[self.device.type]
        self.together = max(1, min(self._rows // search.beams, most))

    def pack_again(self) -> None:
        """Take over the values that the network's weights have now."""
        self._reader.product.pack_again()

    def with_prompt(self, prompt: str) -> "ImageTextCaptioner":
        """The same network after another prompt, of which the last one is kept."""
        if prompt not in self._prompted:
            self._prompted = {prompt: self._connect(prompt)}
        return self._prompted[prompt]

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        return PromptedPictures(self._prepare, bundle, images)

    def draw_sample(self) -> Inputs:
        """A grey picture, to try the captioner with."""
        return SamplePicture(self._prepare)

    def check(self, inputs: Inputs) -> None:
        if not isinstance(inputs, PromptedPictures | SamplePicture):
            raise CheckpointMismatch(
                "the checkpoint expects pictures: evaluate it on a dataset with pictures"
            )

    def look(self, inputs: PromptedPictures) -> PromptedPictures:
        return inputs

    def hidden(self, images: PromptedPictures, captions: Packed) -> Tensor:
        table = tabulate_captions(captions)
        found: Tensor | None = None
        for rows, inputs in images.group_alike(self._pictures):
            state = self._reader.read_prompts(self._reader.choose_inputs(inputs))
            if found is None:
                found = state.hidden.new_empty(len(captions.words), state.hidden.shape[1])
            packs = self._reader.packs
            for part in [table.pack(rows)] if packs else table.split(rows, self._rows):
                found[part.firsts] = state.hidden.repeat_interleave(
                    part.counts, 0, output_size=len(part.firsts)
                )
                if part.words.shape[1]:
                    read = self._reader.read_packed if packs else self._reader.read_captions
                    found[part.places] = read(state, part).flatten(0, 1)[part.is_real]
        assert found is not None
        return found

    def begin(self, images: NetworkInputs) -> WritingState:
        return WritingState(
            self._reader.read_prompts(self._reader.choose_inputs(images)), is_new=True
        )

    def step(self, state: WritingState, words: Tensor) -> tuple[Tensor, WritingState]:
        read = state.read
        if not state.is_new:
            read = self._reader.read_next_words(read, words)
        return read.hidden, WritingState(read, is_new=False)

    def select(self, state: WritingState, rows: Tensor) -> WritingState:
        if torch.equal(rows, torch.arange(len(state.read.hidden), device=rows.device)):
            return state
        return state._replace(read=state.read.select(rows))

    def exact(self) -> NoReturn:
        raise NotImplementedError("near ties of Transformers are not settled")


def connect_captioner(
    reader: ImageTextReader, judged: TransformersCaptioner, open_processor: OpenProcessor
) -> ImageTextCaptioner:
    """Connect a network and its processor. Both are tried with a picture of grey."""
    assert judged.prompt is not None
    processor = open_processor(judged.prompt)
    try:
        with torch.inference_mode():
            ((_, inputs),) = SamplePicture(processor.prepare).group_alike(1)
            sample = reader.choose_inputs(inputs)
            reader.learn(sample)
            state = reader.read_prompts(sample)
    except UnusableCheckpoint:
        raise
    except Exception as error:  # noqa: BLE001  the library may raise anything
        raise UnusableCheckpoint(
            f"the network does not take what the folder's processor makes: {error!r:.300}"
        ) from None
    if processor.pieces > reader.vocabulary:
        raise UnusableCheckpoint(
            f"the tokenizer has {processor.pieces:,} pieces, the model knows "
            f"{reader.vocabulary:,}: they do not belong together"
        )
    if not judged.ends:
        raise ConfigInvalid(
            "expected eos_token_id in generation_config.json or config.json, found none: without "
            "it nobody can tell where captions end",
            pointer="/config.json/eos_token_id",
        )
    end = processor.end if processor.end in judged.ends else judged.ends[0]
    before = reader.list_written(sample)
    longest = library.count_positions(reader.network.config) - state.places - 1
    tokens = PieceTokens(processor, reader.vocabulary, before[-1], end, longest)
    return ImageTextCaptioner(
        reader,
        tokens,
        make_search(judged, end, longest, before[:-1]),
        judged,
        processor.prepare,
        count_cache_bytes(state.cache),
        lambda prompt: connect_captioner(reader, replace(judged, prompt=prompt), open_processor),
    )
