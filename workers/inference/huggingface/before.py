"""What stands before captions in the places of their words: pictures, and perhaps a prompt. It goes
through the same layers, once for each picture, and all its captions or beams read it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.inference.huggingface.stack import Layer, Pair, split

_PLACES = 2_048  # in a layer at once, so that its activations do not grow with the pictures


class Projected(nn.Module):
    """Pictures as the decoder of `model`, a network of the library, takes them."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixel_values: Tensor) -> Tensor:
        found = self.model.get_image_features(pixel_values).pooler_output
        return found if isinstance(found, Tensor) else torch.stack(found)  # of LLaVA, a list


class Blind:
    """Of a layer that looks at nothing besides."""

    def look(self, x: Tensor) -> NoReturn:
        raise NotImplementedError

    def after_look(self, x: Tensor, read: Tensor) -> NoReturn:
        raise NotImplementedError


def times_of(places: int, device: torch.device) -> Tensor:
    """(1, places): START has time 0, what stands before it less."""
    return torch.arange(-places, 0, device=device)[None]


def read(
    layers: Sequence[Layer],
    x: Tensor,
    heads: int,
    times: Tensor | None = None,
    *,
    causal: bool = False,
) -> Iterator[Pair]:
    """For each layer keys and values of the rows (n, places, width), which stand at `times`; of
    `causal` rows none reads a later one.
    """
    times = times_of(x.shape[1], x.device) if times is None else times
    parts = list(torch.split(x, max(1, _PLACES // x.shape[1])))
    for layer in layers:
        own = [[split(each, heads) for each in layer.own(part, times)] for part in parts]
        yield torch.cat([keys for _, keys, _ in own]), torch.cat([values for *_, values in own])
        if layer is layers[-1]:
            return
        for at, (query, keys, values) in enumerate(own):
            seen = functional.scaled_dot_product_attention(query, keys, values, is_causal=causal)
            parts[at] = layer.think(layer.after_own(parts[at], seen.transpose(1, 2).flatten(2)))
