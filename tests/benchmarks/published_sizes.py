"""Captioners of transformers in their published sizes, with random weights: columns and searches
beside the library's own forward pass in file order and its `generate`, in one run.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from rows import Row, seconds  # beside this file
from transformers.utils import logging

from workers.inference import generation, scoring
from workers.inference.captioners import Search
from workers.inference.huggingface import networks
from workers.inference.huggingface.captioner import Transformer
from workers.inference.pieces import Pieces
from workers.inference.prepared import Preparation
from workers.inference.vocabulary import Encoded

_BATCH, _NEW_TOKENS, _REFERENCES = 8, 15, 5
_HALF = (0.5, 0.5, 0.5)


@dataclass
class Case:
    name: str
    library: Any
    ours: Transformer
    pictures: NDArray[np.uint8]
    references: Encoded

    @property
    def pixels(self) -> torch.Tensor:
        return self.ours.preparation.normalised(torch.from_numpy(self.pictures))


def measure(images: int) -> list[Row]:
    logging.set_verbosity_error()
    return [row for name in _MADE for row in _rows(_case(name, images))]


def _rows(case: Case) -> list[Row]:
    theirs: list[np.ndarray] = []
    found: list[Any] = []
    plain = seconds(lambda: theirs.append(_library_columns(case)))
    took = seconds(
        lambda: found.append(scoring.columns(case.ours, case.pictures, case.references)), 2
    )
    note = f"log p within {np.abs(found[-1].logp - theirs[-1]).max():.1g}"
    rows = [Row(f"{case.name}: columns", took, "its own forward pass", plain, note)]
    for beams in (1, 4):
        plain = seconds(lambda beams=beams: found.append(_generated(case, beams)), 2)
        search = Search(beams=beams, most=_NEW_TOKENS)
        took = seconds(
            lambda search=search: found.append(generation.decode(case.ours, case.pictures, search)),
            2,
        )
        ours = [list(caption.words) for caption in found[-1]]
        equal = np.mean([a == b for a, b in zip(ours, found[-3], strict=True)])
        note = f"{equal:.0%} of captions equal"
        rows.append(Row(f"{case.name}: beam {beams}", took, "generate", plain, note))
    return rows


@torch.inference_mode()
def _library_columns(case: Case) -> NDArray[np.float32]:
    """Padded batches in file order, each caption with its own picture."""
    found, references, pixels = [], case.references, case.pixels
    captions = [
        torch.from_numpy(references.tokens[a:b])
        for a, b in zip(
            references.caption_offsets[:-1], references.caption_offsets[1:], strict=True
        )
    ]
    images = references.caption_images
    pad = torch.nn.utils.rnn.pad_sequence
    for at in range(0, len(captions), _BATCH):
        batch = captions[at : at + _BATCH]
        targets = pad(batch, batch_first=True)
        start = torch.full((len(batch), 1), references.start)
        read = torch.cat([start, targets[:, :-1]], dim=1)
        given = pixels[images[at : at + _BATCH]]
        name = "decoder_input_ids" if case.library.config.is_encoder_decoder else "input_ids"
        logits = case.library(pixel_values=given, **{name: read}).logits[:, -read.shape[1] :]
        own = torch.log_softmax(logits, dim=2).gather(2, targets[:, :, None])[:, :, 0]
        found += [row[: len(each)].numpy() for row, each in zip(own, batch, strict=True)]
    return np.concatenate(found)


@torch.inference_mode()
def _generated(case: Case, beams: int) -> list[list[int]]:
    rows = case.library.generate(
        pixel_values=case.pixels, num_beams=beams, max_new_tokens=_NEW_TOKENS, do_sample=False
    ).tolist()
    end = case.ours.tokens.end
    after = [row[1:] for row in rows]
    return [row[: row.index(end)] if end in row else row for row in after]


def _vit_gpt2() -> tuple[Any, int, int, int]:
    encoder, decoder = transformers.ViTConfig(), transformers.GPT2Config()
    both = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    model = transformers.VisionEncoderDecoderModel(both)
    how = model.generation_config
    how.decoder_start_token_id = how.eos_token_id = how.pad_token_id = 50256
    return model, 50256, 50256, 224


def _blip() -> tuple[Any, int, int, int]:
    config = transformers.BlipConfig(text_config={"num_attention_heads": 12}, vision_config={})
    return transformers.BlipForConditionalGeneration(config), 30522, 102, 384


def _git() -> tuple[Any, int, int, int]:
    return transformers.GitForCausalLM(transformers.GitConfig(vision_config={})), 101, 102, 224


_MADE = {"ViT-GPT2": _vit_gpt2, "BLIP": _blip, "GIT": _git}


def _case(name: str, images: int) -> Case:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    library, start, end, side = _MADE[name]()
    library.eval()
    parts = networks.parts_of(copy.deepcopy(library))
    words = parts.decoder.weight.shape[0]
    # What needs neither text nor files is left out.
    tokens = Pieces(None, words, start, end, 500)  # type: ignore[arg-type]
    preparation = Preparation((side, side), None, 2, 1 / 255, _HALF, _HALF)
    ours = Transformer(parts, tokens, preparation, Search(), None)  # type: ignore[arg-type]
    pictures = rng.integers(0, 256, (images, side, side, 3)).astype(np.uint8)
    lengths = np.maximum(4, rng.normal(11, 2.5, images * _REFERENCES).astype(int))
    ids = [np.append(rng.integers(1000, 30_000, length), end) for length in lengths]
    references = Encoded(
        np.concatenate(ids),
        np.cumsum([0, *map(len, ids)]),
        np.arange(0, len(ids) + 1, _REFERENCES),
        start,
    )
    return Case(name, library, ours, pictures, references)
