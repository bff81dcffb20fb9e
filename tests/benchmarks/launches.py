"""Launches of a GPU, and how often the host waits for it, counted on the pretended device: they
grow with a model's layers, not with its other sizes.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rows import record  # beside this file

from helpers import attending_models, builders, huggingface_folders
from helpers.pretended_device import CUDA, pretended_device
from service.contract.plan.tasks import BLOCK_IMAGES
from workers.inference import checkpoints, decoding, generation, scoring
from workers.inference.captioners import Captioner, GenerationOptions
from workers.inference.decoding import DecodingOptions
from workers.inference.vocabulary import EncodedCaptions

_FOLDERS = {"vit-gpt2": "ViT-GPT2", "blip": "BLIP", "git": "GIT"}
_CAPTIONS, _TOKENS, _SEARCHED, _STEPS = 5, 11, 16, 12
_HEAD = (
    "| | columns: launches | waits | greedy: launches | waits | beam 3: launches | waits |\n"
    "|---|---|---|---|---|---|---|"
)


def tell(*, recorded: bool) -> str:
    lines = [
        f"| {name} | " + " | ".join(f"{count}" for count in _counts(model, inputs)) + " |"
        for name, model, inputs in _models()
    ]
    said = (
        f"Columns: one batch, {BLOCK_IMAGES} images with {_CAPTIONS} captions of {_TOKENS} tokens. "
        f"Searches: one step of {_SEARCHED} images."
    )
    told = "\n".join([said, "", _HEAD, *lines])
    if recorded:
        record("Launches", told)
    return told


def _models() -> Iterator[tuple[str, Captioner, np.ndarray]]:
    """Captioners on the device, with inputs of two blocks of images."""
    images = 2 * BLOCK_IMAGES
    features = np.random.default_rng(0).normal(size=(images, 5)).astype(np.float32)
    with pretended_device():
        for name, cell in builders.REPRESENTATIVES:
            model = builders.model(name, cell, builders.tensors(name, cell))
            yield f"{name}, {cell.upper()}", model.on(CUDA), features
        for name in attending_models.NAMES:
            of = attending_models.description(name)
            model = attending_models.model(of, attending_models.arrays(of)).on(CUDA)
            yield name, model, attending_models.regions([4] * images)
        with tempfile.TemporaryDirectory() as folder:
            for kind, name in _FOLDERS.items():
                saved = huggingface_folders.make(Path(folder) / kind, kind, trained=False)
                _, pictures = huggingface_folders.opened(saved, images)
                yield name, checkpoints.open_captioner(saved.folder, device=CUDA), pictures


def _counts(model: Captioner, inputs: np.ndarray) -> list[int]:
    half, some = inputs[:BLOCK_IMAGES], inputs[:_SEARCHED]
    columns = _difference(lambda: _columns(model, half), lambda: _columns(model, inputs))
    steps = [
        _difference(
            lambda beam=beam: _search(model, some, beam, _STEPS),
            lambda beam=beam: _search(model, some, beam, _STEPS + 1),
        )
        for beam in (1, 3)
    ]
    return [count for pair in (columns, *steps) for count in pair]


def _difference(less: Callable[[], None], more: Callable[[], None]) -> tuple[int, int]:
    """Launches and waits of the second task that the first has not."""
    found = []
    for task in (less, more):
        with pretended_device() as device:
            task()
        found.append((device.launches.total(), device.synchronisations.total()))
    (launches, waits), (all_launches, all_waits) = found
    return all_launches - launches, all_waits - waits


def _columns(model: Captioner, inputs: np.ndarray) -> None:
    captions = len(inputs) * _CAPTIONS
    tokens = np.random.default_rng(1).integers(3, 30, captions * _TOKENS)
    offsets = np.arange(captions + 1)
    references = EncodedCaptions(
        tokens, offsets * _TOKENS, offsets[::_CAPTIONS], model.tokens.start
    )
    scoring.compute_columns(model, inputs, references)


def _search(model: Captioner, inputs: np.ndarray, beam: int, length: int) -> None:
    """A search whose captions all have this length."""
    if model.search is None:
        decoding.decode_captions(model, inputs, DecodingOptions(beam, length, length))
    else:
        search = GenerationOptions(beams=beam, most=length, least=length)
        generation.generate_captions(model, inputs, search)
