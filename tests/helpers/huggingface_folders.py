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
from numpy.typing import NDArray
from PIL import Image
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()

KINDS = ("vit-gpt2", "deit-bert", "blip", "git")
SIDE, POSITIONS = 32, 24
COLOURS = ("red", "green", "blue", "yellow", "grey")
THINGS = ("square", "circle", "triangle")
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
# What is one piece; of other words these may be the beginning.
_WHOLE = (
    "a",
    "and",
    "is",
    "it",
    "on",
    "one",
    "table",
    "the",
    "there",
    "red",
    "gree",
    "blue",
    "yel",
)
_WHOLE += ("squ", "circle", "tri", "unmis")
PAD, START, END = 0, 1, 2


@dataclass(frozen=True)
class Saved:
    """A folder, and the library's own model of it."""

    folder: Path
    kind: str
    library: Any
    start: int
    end: int

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


def sentences(images: int, seed: int = 0) -> list[list[str]]:
    """References of pictures that have a colour and a thing."""
    rng = np.random.default_rng(seed)
    found = []
    for image in range(images):
        colour, thing = COLOURS[image % 5], THINGS[image % 3]
        every = [
            f"a {colour} {thing}",
            f"there is a {thing} and it is {colour}",
            f"one {colour} {thing} on a table.",
            f"The {thing}, unmistakably {colour}",
        ]
        found.append([every[at] for at in rng.permutation(4)[: rng.integers(1, 5)]])
    return found


def pictures(images: int, seed: int = 0) -> NDArray[np.uint8]:
    """(n, 40, 48, 3): noise around the colour and the thing of `sentences`."""
    rng = np.random.default_rng(seed)
    base = np.random.default_rng(9).integers(40, 216, (15, 5, 6, 3))
    grown = base.repeat(8, axis=1).repeat(8, axis=2)[np.arange(images) % 15]
    return (grown + rng.integers(-40, 40, (images, 40, 48, 3))).astype(np.uint8)


def write_pictures(bundle: Path, rows: NDArray[np.uint8]) -> list[str]:
    folder = bundle / "images"
    folder.mkdir()
    names = [f"{place:04}.png" for place in range(len(rows))]
    for name, row in zip(names, rows, strict=True):
        Image.fromarray(row).save(folder / name)
    return names


def make(folder: Path, kind: str, *, trained: bool, seed: int = 0) -> Saved:
    torch.manual_seed(seed)
    tokenizer = _byte_pieces() if kind == "vit-gpt2" else _word_pieces()
    start, end = (END, END) if kind == "vit-gpt2" else (START, END)
    model = _MAKE[kind](tokenizer.get_vocab_size()).eval()
    _set_generation(model, start, end)
    saved = Saved(folder, kind, model, start, end)
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
    named = {"vit-gpt2": "ViTImageProcessorPil", "blip": "BlipImageProcessorPil"}
    return getattr(transformers, named[kind])(size=size)


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


_MAKE = {"vit-gpt2": _vit_gpt2, "deit-bert": _deit_bert, "blip": _blip, "git": _git}


def _set_generation(model: Any, start: int, end: int) -> None:
    for part in (model, getattr(model, "text_decoder", None)):
        if part is None:
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


def _byte_pieces() -> Tokenizer:
    """As GPT-2's: bytes, and a blank is of the piece after it. Nothing is trained: what training
    finds differs from run to run where pairs are equally frequent.
    """
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = {piece: place for place, piece in enumerate([*SPECIAL, *letters])}
    merges: list[tuple[str, str]] = []
    for word in _WHOLE:
        for start in ("", "\u0120"):  # which stands for a blank
            piece = start + word
            for end in range(1, len(piece)):
                if piece[: end + 1] not in pieces:
                    pieces[piece[: end + 1]] = len(pieces)
                    merges.append((piece[:end], piece[end]))
    tokenizer = Tokenizer(models.BPE(vocab=pieces, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _word_pieces() -> Tokenizer:
    """As BERT's."""
    letters = [chr(place) for place in range(ord("a"), ord("z") + 1)]
    every = [*SPECIAL, ".", ",", "-", *letters, *(f"##{letter}" for letter in letters), *_WHOLE]
    pieces = {piece: place for place, piece in enumerate(dict.fromkeys(every))}
    tokenizer = Tokenizer(models.WordPiece(vocab=pieces, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer
