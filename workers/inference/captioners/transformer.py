"""`transformer`: a Transformer decoder over places of an image (Vaswani et al. 2017)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from service.contract.formats.architectures import TransformerConfig
from workers.inference.captioners.attention import NOWHERE, mask_missing_places
from workers.inference.captioners.canonical import CanonicalCaptioner
from workers.inference.devices import Product
from workers.inference.packing import GROUP_TOKENS, Packed, RowsByImage, group_captions

_SEARCHED_BYTES = 512_000_000  # of images' keys and values in a search
_USUAL_PLACES = 196

KeysAndValues = tuple[Tensor, Tensor]  # keys and values, (rows, heads, places, size of a head)


@dataclass(frozen=True)
class EmbeddedPlaces:
    """Places (N, P, s), and which of them are there (N, P)."""

    places: Tensor
    there: Tensor

    @property
    def device(self) -> torch.device:
        return self.places.device

    def __len__(self) -> int:
        return len(self.places)

    def of(self, images: Tensor) -> "EmbeddedPlaces":
        return EmbeddedPlaces(self.places[images], self.there[images])

    @property
    def mask(self) -> Tensor:
        """Mask that is added to the places' scores (N, 1, 1, P)."""
        return torch.where(self.there, 0.0, NOWHERE).to(self.places)[:, None, None]


class TransformerState(NamedTuple):
    kept: list[KeysAndValues]  # of each layer, of the words before
    of: Tensor  # (n) the image of each row
    images: list[KeysAndValues]
    mask: Tensor
    time: int


class _TransformerLayer:
    """`words`, `places`: what a row reads of the words of its caption, and of its image."""

    def __init__(self, tensors: dict[str, Tensor], config: TransformerConfig) -> None:
        self._heads = config.heads
        self._first = config.norms == "before"
        self._bend = functional.gelu if config.activation == "gelu" else torch.relu
        self._norms = {
            name: (tensors[f"{name}_norm.weight"], tensors[f"{name}_norm.bias"])
            for name in ("words", "places", "inner")
        }
        self._products = {
            name: Product(tensors[f"{name}.weight"], tensors[f"{name}.bias"])
            for name in ("words", "words_out", "query", "places", "places_out", "inner", "outer")
        }

    def apply(self, name: str, x: Tensor) -> Tensor:
        return self._products[name](x.flatten(0, -2)).view(*x.shape[:-1], -1)

    def split(self, x: Tensor) -> Tensor:
        """(n, m, width) -> (n, heads, m, size)."""
        return x.view(*x.shape[:2], self._heads, -1).transpose(1, 2)

    def own(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values of the words."""
        found = self.apply("words", self._before("words", x))
        return [self.split(each) for each in found.chunk(3, dim=-1)]

    def images(self, seen: "EmbeddedPlaces") -> KeysAndValues:
        keys, values = self.apply("places", seen.places).chunk(2, dim=-1)
        values = torch.where(seen.there[:, :, None], values, 0.0)
        return self.split(keys), self.split(values)

    def query(self, x: Tensor) -> Tensor:
        return self.apply("query", self._before("places", x))

    def after(self, name: str, x: Tensor, read: Tensor) -> Tensor:
        """The row after what it has read, or thought: added, and normalised if not before."""
        return x + read if self._first else _normal(x + read, *self._norms[name])

    def _before(self, name: str, x: Tensor) -> Tensor:
        return _normal(x, *self._norms[name]) if self._first else x

    def think(self, x: Tensor) -> Tensor:
        inner = self.apply("inner", self._before("inner", x))
        return self.apply("outer", self._bend(inner))


class TransformerCaptioner(CanonicalCaptioner):
    """All words of a batch go through the layers at once: an image's captions stand beside each
    other in one row, each blind for the others.
    """

    def _build(self) -> None:
        config = self.description.config
        assert isinstance(config, TransformerConfig)
        self.config = config
        self._image = Product(self.tensors["image.weight"], self.tensors["image.bias"])
        self._layers = [
            _TransformerLayer(self._named(f"layers.{layer}."), config)
            for layer in range(config.layers)
        ]

    def _named(self, prefix: str) -> dict[str, Tensor]:
        return {
            name.removeprefix(prefix): tensor
            for name, tensor in self.tensors.items()
            if name.startswith(prefix)
        }

    @property
    def together(self) -> int:
        keys = 8 * self.config.layers * self.config.size * _USUAL_PLACES
        return max(1, min(128, _SEARCHED_BYTES // keys))

    def look(self, features: Tensor) -> EmbeddedPlaces:
        there, places = mask_missing_places(
            features.to(self.tensors["image.weight"]), self.config.normalize
        )
        seen = self._image(places.flatten(0, 1)).view(*places.shape[:2], -1)
        return EmbeddedPlaces(self._drop(seen, "image"), there)

    def hidden(self, images: EmbeddedPlaces, captions: Packed) -> Tensor:
        parts, places = [], []
        for group in group_captions(captions, GROUP_TOKENS[images.device.type]):
            seen = images.of(group.images)
            mask = seen.mask
            x = self._embed(group.words, group.times)
            for layer in self._layers:
                x = self._through(layer, x, group.mask[:, None], seen, mask)
            parts.append(self._last(x.flatten(0, 1)[group.real]))
            places.append(group.places)
        order = torch.cat(places).argsort()
        return torch.cat(parts)[order]

    def _through(
        self, layer: _TransformerLayer, x: Tensor, own: Tensor, seen: EmbeddedPlaces, mask: Tensor
    ) -> Tensor:
        query, keys, values = layer.own(x)
        read = self._out(layer, "words", _attend(query, keys, values, own))
        x = layer.after("words", x, read)
        query = layer.split(layer.query(x))
        read = self._out(layer, "places", _attend(query, *layer.images(seen), mask))
        x = layer.after("places", x, read)
        return layer.after("inner", x, self._drop(layer.think(x), "output"))

    def begin(self, images: EmbeddedPlaces) -> TransformerState:
        pairs = [layer.images(images) for layer in self._layers]
        none = [(keys[:, :, :0], values[:, :, :0]) for keys, values in pairs]
        of = torch.arange(len(images.places), device=images.device)
        return TransformerState(none, of, pairs, images.mask, 0)

    def step(self, state: TransformerState, words: Tensor) -> tuple[Tensor, TransformerState]:
        x = self._embed(words[:, None], torch.full_like(words[:, None], state.time))
        beside = RowsByImage(state.of)
        kept = []
        for layer, image, before in zip(self._layers, state.images, state.kept, strict=True):
            query, *pair = layer.own(x)
            keys, values = (torch.cat(each, dim=2) for each in zip(before, pair, strict=True))
            kept.append((keys, values))
            x = layer.after("words", x, self._out(layer, "words", _attend(query, keys, values)))
            read = self._look_at(layer, x, beside, image, state.mask)
            x = layer.after("places", x, read)
            x = layer.after("inner", x, layer.think(x))
        return self._last(x[:, 0]), TransformerState(
            kept, state.of, state.images, state.mask, state.time + 1
        )

    def select(self, state: TransformerState, rows: Tensor) -> TransformerState:
        kept = [(keys[rows], values[rows]) for keys, values in state.kept]
        return TransformerState(kept, state.of[rows], state.images, state.mask, state.time)

    def _look_at(
        self,
        layer: _TransformerLayer,
        x: Tensor,
        beside: RowsByImage,
        image: KeysAndValues,
        mask: Tensor,
    ) -> Tensor:
        query = layer.split(beside.spread(layer.query(x)[:, 0]))
        keys, values = (beside.rows(each) for each in image)
        read = beside.back(_join(_attend(query, keys, values, beside.rows(mask))))
        return layer.apply("places_out", read)[:, None]

    def _last(self, x: Tensor) -> Tensor:
        if not self.config.last_norm:
            return x
        return _normal(x, self.tensors["norm.weight"], self.tensors["norm.bias"])

    def _out(self, layer: _TransformerLayer, name: str, read: Tensor) -> Tensor:
        return self._drop(layer.apply(f"{name}_out", _join(read)), "output")

    def _embed(self, words: Tensor, times: Tensor) -> Tensor:
        size = self.config.size
        embedded = self.tensors["embedding.weight"][words].to(self.tensors["image.weight"])
        return self._drop(embedded * math.sqrt(size) + _waves(times, size, embedded), "embedding")


def _waves(times: Tensor, size: int, like: Tensor) -> Tensor:
    """(…) -> (…, size): sine and cosine in turn, of ever longer waves."""
    rates = 10_000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64, device=like.device) / size)
    angles = times[..., None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :size].to(like)


def _normal(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.layer_norm(x, weight.shape, weight, bias)


def _attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    return functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)


def _join(x: Tensor) -> Tensor:
    """(n, heads, m, size) -> (n, m, width)."""
    return x.transpose(1, 2).flatten(2)
