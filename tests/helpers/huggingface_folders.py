"""Folders of small captioners as transformers saves them: with random weights, or trained for some
steps on made-up pictures until their captions end.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer
from transformers.utils import logging

from helpers import tokenizer_files
from helpers.synthetic_pictures import pictures, sentences
from workers.inference import checkpoints
from workers.inference.captioners import Captioner

logging.set_verbosity_error()
logging.disable_progress_bar()

SIDE, POSITIONS = 32, 24
PAD, START, END = 0, 1, 2


@dataclass(frozen=True)
class Saved:
    """A folder, and the library's own model of it."""

    folder: Path
    kind: str
    library: Any
    start: int
    end: int
    tokenizer: Tokenizer

    def logits(self, pixels: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """The library's, of what follows each of the ids (n, m)."""
        if self.kind in ("blip", "git"):
            found = self.library(pixel_values=pixels, input_ids=ids).logits
        else:
            found = self.library(pixel_values=pixels, decoder_input_ids=ids).logits
        return found[:, -ids.shape[1] :]

    def generated(self, pixels: torch.Tensor, **how: Any) -> list[list[int]]:
        """Ids between START and END."""
        with torch.no_grad():
            rows = self.library.generate(pixel_values=pixels, **how).tolist()
        after = [row[1:] for row in rows]
        return [row[: row.index(self.end)] if self.end in row else row for row in after]


def make(folder: Path, kind: str, *, trained: bool, seed: int = 0) -> Saved:
    torch.manual_seed(seed)
    is_gpt2 = kind == "vit-gpt2"
    of_bytes = is_gpt2 or kind in _OF_BYTES
    tokenizer = tokenizer_files.byte_pieces() if of_bytes else tokenizer_files.word_pieces()
    start, end = (END, END) if is_gpt2 else (START, END)
    model = _MAKE[kind](tokenizer.get_vocab_size()).eval()
    _set_generation(model, start, end)
    saved = Saved(folder, kind, model, start, end, tokenizer)
    if trained:
        _train(saved, tokenizer)
    else:
        _end_sooner(model, end)
    model.save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        sep_token="[SEP]",
        cls_token="[CLS]",
    ).save_pretrained(folder)
    processor(kind).save_pretrained(folder)
    return saved


def processor(kind: str) -> Any:
    """The library's image processor of PIL pictures."""
    size = {"height": SIDE, "width": SIDE}
    if kind == "git":
        return transformers.CLIPImageProcessorPil(size={"shortest_edge": 36}, crop_size=size)
    if kind == "deit-bert":
        return transformers.DeiTImageProcessorPil(size={"height": 40, "width": 36}, crop_size=size)
    named = {"vit-gpt2": "ViT", "blip": "Blip", **_PROCESSORS}
    return getattr(transformers, f"{named[kind]}ImageProcessorPil")(size=size)


def opened(saved: Saved, images: int) -> tuple[Captioner, np.ndarray]:
    """The captioner in the folder, and made-up pictures as it takes them."""
    shape, rows = processor(saved.kind), list(pictures(images, seed=3))
    fitted = shape(rows, do_rescale=False, do_normalize=False)["pixel_values"]
    return checkpoints.open_captioner(saved.folder), np.stack(fitted).transpose(0, 2, 3, 1)


def change(folder: Path, name: str, **values: Any) -> None:
    """Put values into a JSON file of a folder."""
    found = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps({**found, **values}))


_SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
_SEEN = {**_SIZES, "image_size": SIDE, "patch_size": 8, "initializer_range": 0.2}


def _vit_gpt2(words: int) -> Any:
    decoder = transformers.GPT2Config(
        vocab_size=words,
        n_positions=POSITIONS,
        n_embd=24,
        n_layer=2,
        n_head=4,
        initializer_range=0.2,
        bos_token_id=END,
        eos_token_id=END,
    )
    return _encoder_decoder(transformers.ViTConfig(hidden_size=32, **_SEEN), decoder)


def _deit_bert(words: int) -> Any:
    decoder = transformers.BertConfig(
        vocab_size=words,
        hidden_size=24,
        max_position_embeddings=POSITIONS,
        initializer_range=0.2,
        **_SIZES,
    )
    return _encoder_decoder(transformers.DeiTConfig(hidden_size=24, **_SEEN), decoder)


def _encoder_decoder(encoder: Any, decoder: Any) -> Any:
    both = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    return transformers.VisionEncoderDecoderModel(both)


def _blip(words: int) -> Any:
    text = {
        **_SIZES,
        "vocab_size": words,
        "hidden_size": 24,
        "encoder_hidden_size": 32,
        "max_position_embeddings": POSITIONS,
        "bos_token_id": START,
        "sep_token_id": END,
        "eos_token_id": END,
        "pad_token_id": PAD,
        "initializer_range": 0.2,
    }
    config = transformers.BlipConfig(
        vision_config={"hidden_size": 32, **_SEEN}, text_config=text, initializer_range=0.2
    )
    return transformers.BlipForConditionalGeneration(config)


def _git(words: int) -> Any:
    config = transformers.GitConfig(
        vision_config={"hidden_size": 32, **_SEEN},
        vocab_size=words,
        hidden_size=24,
        max_position_embeddings=POSITIONS,
        bos_token_id=START,
        eos_token_id=END,
        pad_token_id=PAD,
        initializer_range=0.2,
        **_SIZES,
    )
    return transformers.GitForCausalLM(config)


def _set_generation(model: Any, start: int, end: int) -> None:
    for part in (
        model,
        getattr(model, "text_decoder", None),
    ):
        if getattr(part, "generation_config", None) is None:
            continue
        how = part.generation_config
        how.bos_token_id, how.eos_token_id, how.pad_token_id = start, end, PAD
        if part.config.is_encoder_decoder:
            how.decoder_start_token_id = start
    if model.config.model_type == "vision-encoder-decoder":
        model.config.decoder_start_token_id, model.config.pad_token_id = start, PAD
        model.config.eos_token_id = end


def _train(saved: Saved, tokenizer: Tokenizer, steps: int = 60) -> None:
    """Teacher forcing of all references at once, by the plain cross-entropy."""
    shape = processor(saved.kind)
    pixels = shape(list(pictures(15)), return_tensors="pt")["pixel_values"]
    rows, ids = [], []
    for image, captions in enumerate(sentences(15)):
        for caption in captions:
            pieces = tokenizer.encode(caption, add_special_tokens=False).ids
            ids.append(torch.tensor([saved.start, *pieces, saved.end]))
            rows.append(image)
    padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=-1)
    read, targets = padded[:, :-1].clamp(min=0), padded[:, 1:]
    saved.library.train()
    optimiser = torch.optim.Adam(saved.library.parameters(), lr=1e-2)
    for _ in range(steps):
        logits = saved.logits(pixels[rows], read)
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=-1
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    saved.library.eval()


def _end_sooner(model: Any, end: int) -> None:
    """What is random seldom says END; with this bias captions end after some pieces."""
    part = getattr(model, "decoder", None) or getattr(model, "text_decoder", model)
    output = part.get_output_embeddings()
    if output.bias is not None:
        with torch.no_grad():
            output.bias[end] += 1.5


_EXACT = {**_SIZES, "hidden_size": 32, "image_size": 32, "patch_size": 8}


def _swin(words: int) -> Any:
    """Of pictures of 8 and of 4 places in a row, in windows of 4 that are moved in every second."""
    encoder = transformers.SwinConfig(
        image_size=32, patch_size=4, embed_dim=12, depths=[2, 2], num_heads=[2, 3], window_size=4
    )
    return _random(_with_gpt2(encoder, words))


def _beit(words: int) -> Any:
    from transformers.models.beit.modeling_beit import BeitRelativePositionBias  # two seconds

    # The library keeps an index that was made in inference mode; no training can use it afterwards.
    index = BeitRelativePositionBias.generate_relative_position_index
    kept = getattr(index, "__wrapped__", index)
    BeitRelativePositionBias.generate_relative_position_index = staticmethod(kept)
    encoder = transformers.BeitConfig(
        **_EXACT, use_relative_position_bias=True, use_absolute_position_embeddings=True
    )
    return _random(_with_gpt2(encoder, words))


def _with_gpt2(encoder: Any, words: int) -> Any:
    decoder = transformers.GPT2Config(
        vocab_size=words, n_positions=24, n_embd=24, n_layer=2, n_head=4
    )
    return _encoder_decoder(encoder, decoder)


def _random(model: Any) -> Any:
    """Otherwise its queries are zeros, and its first layers as good as that."""
    for values in model.parameters():
        if values.dim() > 1:
            torch.nn.init.normal_(values, std=0.2)
    return model


_MAKE = {
    "vit-gpt2": _vit_gpt2,
    "deit-bert": _deit_bert,
    "blip": _blip,
    "git": _git,
    "swin-gpt2": _swin,
    "beit-gpt2": _beit,
}
KINDS = tuple(_MAKE)
_OF_BYTES = ("swin-gpt2", "beit-gpt2")
_PROCESSORS = {
    "swin-gpt2": "ViT",
    "beit-gpt2": "Beit",
}
