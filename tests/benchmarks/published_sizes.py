"""Captioners of transformers in their published sizes, with random weights: columns and searches
beside the library's own forward pass in file order and its `generate`, in one run; columns also
beside the machine's rate of matrix products, and both by the length of captions.
"""

import copy
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from rates import DeviceRates, Work  # beside this file
from rows import Row, seconds  # beside this file
from transformers.utils import logging

from service.contract.formats.preprocessing import PicturePreprocessing, Rectangle
from workers.inference import generation, scoring
from workers.inference.captioners import GenerationOptions
from workers.inference.devices import Product, freeze_layers
from workers.inference.huggingface import loader
from workers.inference.huggingface.captioner import HuggingFaceCaptioner
from workers.inference.huggingface.decoder_stack import Decoder
from workers.inference.huggingface.library import find_output_layer
from workers.inference.pieces import PieceTokens
from workers.inference.preprocessing import PicturePreparation
from workers.inference.vocabulary import EncodedCaptions

_BATCH, _NEW_TOKENS, _REFERENCES = 8, 15, 5
_SEARCHED = (1, 7)  # images in a search
_LENGTHS = (10, 80)


@dataclass
class Case:
    name: str
    library: Any
    ours: HuggingFaceCaptioner
    parts: Decoder
    pictures: NDArray[np.uint8]
    references: EncodedCaptions

    @property
    def pixels(self) -> torch.Tensor:
        return self.ours.preparation.normalised(
            torch.tensor(self.pictures, device=self.ours.device)
        )


def measure(images: int, device: torch.device) -> list[Row]:
    """Some minutes a captioner: each row is told on stderr as it comes."""
    logging.set_verbosity_error()
    rows, rates = [], DeviceRates.measure(device)
    for name in _MADE:
        for row in _rows(_case(name, images, device), rates):
            print(f"{row.what}: {row.seconds:.3g} s", file=sys.stderr, flush=True)
            rows.append(row)
    return rows


def _rows(case: Case, rates: DeviceRates) -> Iterator[Row]:
    yield _columns(case, rates)
    yield from _by_length(case, rates)
    for images in sorted({min(images, len(case.pictures)) for images in _SEARCHED}):
        yield from (_search(case, images, beams, rates) for beams in (1, 4))


def _columns(case: Case, rates: DeviceRates) -> Row:
    theirs: list[np.ndarray] = []
    found: list[Any] = []
    plain = seconds(lambda: theirs.append(_library_columns(case)))

    def task() -> None:
        found.append(scoring.compute_columns(case.ours, case.pictures, case.references))

    took = seconds(task, 2)
    note = f"log p within {np.abs(found[-1].logp - theirs[-1]).max():.1g}; {_rate_of(case)}"
    note = f"{note}; with it {rates.describe(Work.count(task), took)}"
    return Row(f"{case.name}: columns", took, "its own forward pass", plain, note)


def _rate_of(case: Case) -> str:
    """Of columns without the encoder, beside the two kernels' own products, by turns."""
    seen = _Seen(case)
    a, b = torch.randn(2, 2048, 2048, device=case.ours.device)
    packed = Product(b)
    tasks = (
        lambda: scoring.compute_columns(seen.ours, case.pictures, case.references),
        lambda: a @ b,
        lambda: packed(a),
    )
    times = np.array([[seconds(task) for task in tasks] for _ in range(3)])
    took, plain, fast = np.median(times, axis=0)
    rate = _multiply_adds(case, seen.pictures) / took
    return (
        f"without the encoder {rate / 1e9:.0f} G multiply-adds/s, "
        f"{rate * plain / 2048**3:.0%} of torch's own rate, {rate * fast / 2048**3:.0%} of packed"
    )


def _multiply_adds(case: Case, seen: torch.Tensor) -> int:
    """The matrix products that columns need: each token through all layers that read it, each
    image's places through those that make its keys and values.
    """
    width = case.ours.output.weight.shape[0]
    layers = len(list(case.parts.layers))
    # Widths squared; the last layer of images that go through layers makes keys and values alone.
    of_token, of_place = (12, 12 - 9 / layers) if case.parts.joint else (14, 2)
    tokens, places = len(case.references.tokens), seen.shape[0] * seen.shape[1]
    inner = layers * width**2 * (tokens * of_token + places * of_place)
    return int(inner) + tokens * case.ours.output.weight.numel()


def _by_length(case: Case, rates: DeviceRates) -> list[Row]:
    """Time of a token, without the encoder, beside that of captions of the first length."""
    seen = _Seen(case)
    images = len(case.pictures)
    rng = np.random.default_rng(1)
    times: dict[str, list[float]] = {"columns": [], "greedy": []}
    for length in _LENGTHS:
        ids = rng.integers(1000, 30_000, images * length)
        offsets = np.arange(images + 1)
        given = EncodedCaptions(ids, offsets * length, offsets, case.references.start)
        search = GenerationOptions(most=length, least=length)
        tasks = {
            "columns": lambda given=given: scoring.compute_columns(seen.ours, case.pictures, given),
            "greedy": lambda search=search: generation.generate_captions(
                seen.ours, case.pictures, search
            ),
        }
        for name, task in tasks.items():
            times[name].append(seconds(task, 2) / length)
    short, long = _LENGTHS
    return [
        Row(
            f"{case.name}: {name}, a token of {long}",
            each[1],
            f"of {short}",
            each[0],
            rates.describe(Work.count(tasks[name]), each[1] * long),
        )
        for name, each in times.items()
    ]


class _Seen:
    """A case's captioner whose encoder has seen the pictures already."""

    @torch.inference_mode()
    def __init__(self, case: Case) -> None:
        self.pictures = case.ours.look(torch.tensor(case.pictures, device=case.ours.device))
        self.ours = copy.copy(case.ours)
        self.ours.look = lambda _: self.pictures  # type: ignore[method-assign]


def _search(case: Case, images: int, beams: int, rates: DeviceRates) -> Row:
    found: list[Any] = []
    some = case.pictures[:images]
    search = GenerationOptions(beams=beams, most=_NEW_TOKENS)
    plain = seconds(lambda: found.append(_generated(case, images, beams)), 2)

    def task() -> None:
        found.append(generation.generate_captions(case.ours, some, search))

    took = seconds(task, 2)
    ours = [list(caption.words) for caption in found[-1]]
    equal = np.mean([a == b for a, b in zip(ours, found[0], strict=True)])
    what = f"{case.name}: beam {beams}, {images} images"
    note = f"{equal:.0%} of captions equal; {rates.describe(Work.count(task), took)}"
    return Row(what, took, "generate", plain, note)


@torch.inference_mode()
def _library_columns(case: Case) -> NDArray[np.float32]:
    """Padded batches in file order, each caption with its own picture."""
    found, references, pixels = [], case.references, case.pixels
    captions = [
        torch.tensor(references.tokens[a:b], device=pixels.device)
        for a, b in zip(
            references.caption_offsets[:-1], references.caption_offsets[1:], strict=True
        )
    ]
    images = references.caption_images
    pad = torch.nn.utils.rnn.pad_sequence
    for at in range(0, len(captions), _BATCH):
        batch = captions[at : at + _BATCH]
        targets = pad(batch, batch_first=True)
        start = torch.full_like(targets[:, :1], references.start)
        read = torch.cat([start, targets[:, :-1]], dim=1)
        given = pixels[images[at : at + _BATCH]]
        name = "decoder_input_ids" if case.library.config.is_encoder_decoder else "input_ids"
        logits = case.library(pixel_values=given, **{name: read}).logits[:, -read.shape[1] :]
        own = torch.log_softmax(logits, dim=2).gather(2, targets[:, :, None])[:, :, 0]
        found += [row[: len(each)].cpu().numpy() for row, each in zip(own, batch, strict=True)]
    return np.concatenate(found)


@torch.inference_mode()
def _generated(case: Case, images: int, beams: int) -> list[list[int]]:
    rows = case.library.generate(
        pixel_values=case.pixels[:images],
        num_beams=beams,
        max_new_tokens=_NEW_TOKENS,
        do_sample=False,
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


def _case(name: str, images: int, device: torch.device) -> Case:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    library, start, end, side = _MADE[name]()
    library.eval().to(device)
    network = copy.deepcopy(library)
    freeze_layers(network, find_output_layer(network))
    parts = loader.split_network(network)
    words = parts.decoder.weight.shape[0]
    # What needs neither text nor files is left out.
    tokens = PieceTokens(None, words, start, end, 500)  # type: ignore[arg-type]
    square = Rectangle(height=side, width=side)
    preparation = PicturePreparation(PicturePreprocessing(size=square, resample=2))
    ours = HuggingFaceCaptioner(parts, tokens, preparation, GenerationOptions(), None)  # type: ignore[arg-type]
    pictures = rng.integers(0, 256, (images, side, side, 3)).astype(np.uint8)
    lengths = np.maximum(4, rng.normal(11, 2.5, images * _REFERENCES).astype(int))
    ids = [np.append(rng.integers(1000, 30_000, length), end) for length in lengths]
    references = EncodedCaptions(
        np.concatenate(ids),
        np.cumsum([0, *map(len, ids)]),
        np.arange(0, len(ids) + 1, _REFERENCES),
        start,
    )
    return Case(name, library, ours, parts.decoder, pictures, references)
