"""A vision-language model of 8 layers: columns of 5 references an image behind 400 places of
picture and prompt, beside the library's own forward pass in file order; and the largest tensor.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
import transformers
from rows import Row, seconds  # beside this file
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from service.contract.formats.huggingface import GenerationSettings, TransformersCaptioner
from workers.inference import scoring
from workers.inference.devices import freeze_layers
from workers.inference.huggingface import library
from workers.inference.huggingface.image_text_captioner import (
    ImageTextCaptioner,
    connect_captioner,
)
from workers.inference.huggingface.image_text_reader import ImageTextReader
from workers.inference.vocabulary import EncodedCaptions

_PLACES, _REFERENCES, _PIECES, _SIDE = 400, 5, 12, 280
_IMAGE, _END = 31_999, 2


class _Processor:
    """Stands for a folder's processor: made-up pixels and a prompt without words."""

    pieces, end = 32_000, _END

    def prepare(self, picture: bytes) -> dict[str, torch.Tensor]:
        rng = np.random.default_rng(len(picture))
        pixels = torch.from_numpy(rng.normal(size=(1, 3, _SIDE, _SIDE)).astype(np.float32))
        ids = torch.tensor([[1, *[_IMAGE] * _PLACES, 5, 6, 7]])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "pixel_values": pixels}


class _Pictures:
    def __init__(self, images: Sequence[int]) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows: slice) -> "_Pictures":
        return _Pictures(self.images[rows])

    def group_alike(self, most: int) -> Iterator[tuple[list[int], dict[str, torch.Tensor]]]:
        for start in range(0, len(self), most):
            rows = range(start, min(start + most, len(self)))
            found = [_Processor().prepare(b" " * self.images[row]) for row in rows]
            yield list(rows), {name: torch.cat([each[name] for each in found]) for name in found[0]}


def measure(images: int, device: torch.device) -> list[Row]:
    model = _model().to(device)
    ours = _captioner(copy.deepcopy(model))
    ours.check = lambda inputs: None  # type: ignore[method-assign]
    found: list[Any] = []
    pictures, references = _Pictures(range(1, images + 1)), _references(images, _PIECES)
    took = seconds(lambda: found.append(scoring.compute_columns(ours, pictures, references)), 2)
    theirs: list[np.ndarray] = []
    rows = []
    for batch, told in ((1, "a caption at a time"), (_REFERENCES, "an image's captions at once")):
        plain = seconds(lambda b=batch: theirs.append(_by_library(model, pictures, references, b)))
        note = f"log p within {np.abs(found[-1].logp - theirs[-1]).max():.1g}"
        rows.append(Row(f"columns of {images} images", took, f"forward pass, {told}", plain, note))
    largest = [_largest_tensor(ours, pictures, _references(images, pieces)) for pieces in (12, 48)]
    note = (
        f"the largest tensor: {largest[0]:,} values with 12 pieces a caption, {largest[1]:,} of 48"
    )
    rows[0] = Row(**{**vars(rows[0]), "note": f"{rows[0].note}; {note}"})
    return rows


def _model() -> Any:
    torch.manual_seed(0)
    text = transformers.LlamaConfig(
        hidden_size=512, intermediate_size=1376, num_hidden_layers=8, num_attention_heads=8,
        vocab_size=32_000, max_position_embeddings=2048,
    )  # fmt: skip
    seen = transformers.CLIPVisionConfig(
        hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4,
        image_size=_SIDE, patch_size=14,
    )  # fmt: skip
    config = transformers.LlavaConfig(
        text_config=text, vision_config=seen, image_token_index=_IMAGE
    )
    return transformers.LlavaForConditionalGeneration(config).eval().requires_grad_(False)


def _captioner(model: Any) -> ImageTextCaptioner:
    freeze_layers(model, library.find_output_layer(model))
    searched = GenerationSettings(eos_token_id=_END)
    judged = TransformersCaptioner({"model_type": "llava"}, searched, {}, None, "")
    reader = ImageTextReader(model, judged.start)
    return connect_captioner(reader, judged, lambda prompt: _Processor())  # type: ignore[arg-type, return-value]


def _references(images: int, pieces: int) -> EncodedCaptions:
    many = images * _REFERENCES
    ids = np.random.default_rng(0).integers(10, 30_000, (many, pieces))
    ids[:, -1] = _END
    offsets = np.arange(many + 1) * pieces
    return EncodedCaptions(ids.ravel(), offsets, np.arange(images + 1) * _REFERENCES, 7)


@torch.inference_mode()
def _by_library(
    model: Any, pictures: _Pictures, references: EncodedCaptions, batch: int
) -> np.ndarray:
    found, device = [], next(model.parameters()).device
    ids = torch.from_numpy(references.tokens.reshape(len(references.lengths), -1)).to(device)
    for start in range(0, len(ids), batch):
        captions = ids[start : start + batch]
        images = [int(each) for each in references.caption_images[start : start + batch]]
        own = [_Processor().prepare(b" " * pictures.images[image]) for image in images]
        given = {name: torch.cat([each[name] for each in own]).to(device) for name in own[0]}
        given["input_ids"] = torch.cat([given["input_ids"], captions], dim=1)
        given["attention_mask"] = torch.ones_like(given["input_ids"])
        logits = model(**given).logits[:, -captions.shape[1] - 1 : -1]
        found.append(logits.log_softmax(2).gather(2, captions[:, :, None]).flatten().cpu().numpy())
    return np.concatenate(found)


class _Largest(TorchDispatchMode):
    values = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        sizes = [each.numel() for each in tree_leaves(out) if isinstance(each, torch.Tensor)]
        self.values = max([self.values, *sizes])
        return out


def _largest_tensor(
    ours: ImageTextCaptioner, pictures: _Pictures, references: EncodedCaptions
) -> int:
    with _Largest() as largest:
        scoring.compute_columns(ours, pictures[:2], references.part(0, 2))
    return largest.values
