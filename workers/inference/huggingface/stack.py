"""A stack of Transformer decoder layers that reads words and looks at images.

Each image's keys and values are computed once and shared by all its captions or beams: in teacher
forcing the captions of an image stand beside each other in one row, each blind for the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

Pair = tuple[Tensor, Tensor]  # keys and values, (rows, heads, places, size of a head)


class Layer(Protocol):
    """One layer's parts between its attentions, of rows (n, m, width)."""

    def own(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of the words."""
        ...

    def after_own(self, x: Tensor, read: Tensor) -> Tensor:
        """The rows after what the words have read of each other."""
        ...

    def look(self, x: Tensor) -> Tensor:
        """Queries of the words to the image."""
        ...

    def after_look(self, x: Tensor, read: Tensor) -> Tensor: ...

    def think(self, x: Tensor) -> Tensor:
        """The rows after the layer."""
        ...


class Looking(Protocol):
    def image(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of images."""
        ...


class Decoder(Protocol):
    heads: int
    joint: bool  # words read images and words in one attention, and do not `look`

    @property
    def layers(self) -> Sequence[Layer]: ...

    weight: Tensor  # (V, o) of the output layer
    bias: Tensor | None

    def embed(self, words: Tensor, times: Tensor) -> Tensor: ...

    def images(self, seen: Tensor) -> Iterator[Pair]:
        """For each layer keys and values of images, of what their encoder has made of them."""
        ...

    def finish(self, x: Tensor) -> Tensor:
        """The input of the output layer."""
        ...


@dataclass(frozen=True)
class State:
    """Row r belongs to image `of[r]`; `width` rows to each image in turn, or 0 if not so."""

    images: Sequence[Pair]
    of: Tensor
    width: int
    kept: Sequence[Pair]
    time: int


def read_all(decoder: Decoder, seen: Tensor, words: Tensor, times: Tensor, mask: Tensor) -> Tensor:
    """Rows (n, m, width) of words (n, m), which stand at `times` of their captions; `mask`
    (n, m, m) is true where the first word may read the second.
    """
    x = decoder.embed(words, times)
    mask = mask[:, None]
    if decoder.joint:
        sight = mask.new_ones(*mask.shape[:3], seen.shape[1])
        mask = torch.cat([sight, mask], dim=3)
    for layer, image in zip(decoder.layers, decoder.images(seen), strict=True):
        query, *words_pair = (split(each, decoder.heads) for each in layer.own(x))
        keys, values = _after(image, words_pair) if decoder.joint else words_pair
        x = layer.after_own(x, _attend(query, keys, values, mask))
        if not decoder.joint:
            x = layer.after_look(x, _attend(split(layer.look(x), decoder.heads), *image))
        x = layer.think(x)
    return decoder.finish(x)


def begin(decoder: Decoder, seen: Tensor) -> State:
    images = list(decoder.images(seen))
    none = [(keys[:, :, :0], values[:, :, :0]) for keys, values in images]
    return State(images, torch.arange(len(seen), device=seen.device), 1, none, 0)


def read_next(decoder: Decoder, state: State, words: Tensor) -> tuple[Tensor, State]:
    """Read one word in each row: (n, width), and the state after it."""
    x = decoder.embed(words[:, None], torch.full_like(words[:, None], state.time))
    kept = []
    for layer, image, before in zip(decoder.layers, state.images, state.kept, strict=True):
        query, *pair = (split(each, decoder.heads) for each in layer.own(x))
        keys, values = _after(before, pair)
        kept.append((keys, values))
        if decoder.joint:
            x = layer.after_own(x, _attend_jointly(query, image, (keys, values), state))
        else:
            x = layer.after_own(x, _attend(query, keys, values))
            query = split(layer.look(x), decoder.heads)
            x = layer.after_look(x, _attend_images(query, image, state))
        x = layer.think(x)
    after = State(state.images, state.of, state.width, kept, state.time + 1)
    return decoder.finish(x)[:, 0], after


def select(state: State, rows: Tensor) -> State:
    if torch.equal(rows, torch.arange(len(state.of), device=rows.device)):
        return state
    kept = [(keys[rows], values[rows]) for keys, values in state.kept]
    there, of = torch.unique(state.of[rows], return_inverse=True)
    images = state.images
    if len(there) < len(images[0][0]):
        images = [(keys[there], values[there]) for keys, values in images]
    width, rest = divmod(len(of), max(1, len(there)))
    even = torch.arange(len(there), device=of.device).repeat_interleave(width)
    is_even = not rest and torch.equal(of, even)
    return State(images, of, width if is_even else 0, kept, state.time)


def looked_at(
    layers: Iterable[Looking], into: nn.Module | None, seen: Tensor, heads: int
) -> Iterator[Pair]:
    """For each layer keys and values of images; `into` is between encoder and decoder, if any."""
    seen = seen if into is None else into(seen)
    for layer in layers:
        keys, values = layer.image(seen)
        yield split(keys, heads), split(values, heads)


def split(x: Tensor, heads: int) -> Tensor:
    """(n, m, width) -> (n, heads, m, size)."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def _join(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


def _after(first: Pair, second: Sequence[Tensor]) -> Pair:
    keys, values = second
    return torch.cat([first[0], keys], dim=2), torch.cat([first[1], values], dim=2)


def _attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    return _join(functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask))


def _beside(rows: Tensor, state: State) -> Tensor:
    """(n, heads, 1, size) -> (images, heads, width, size): the rows of each image together."""
    _, heads, _, size = rows.shape
    return rows.view(-1, state.width, heads, size).transpose(1, 2)


def _apart(rows: Tensor) -> Tensor:
    """Back again: (images, heads, width, …) -> (n, heads, 1, …)."""
    return rows.transpose(1, 2).flatten(0, 1)[:, :, None]


def _attend_images(query: Tensor, image: Pair, state: State) -> Tensor:
    if not state.width:
        keys, values = image
        return _attend(query, keys[state.of], values[state.of])
    read = functional.scaled_dot_product_attention(_beside(query, state), *image)
    return _join(_apart(read))


def _attend_jointly(query: Tensor, image: Pair, words: Pair, state: State) -> Tensor:
    """One attention to the image, whose keys all its rows share, and to the words of a row."""
    if not state.width:
        keys, values = (each[state.of] for each in image)
        return _attend(query, *_after((keys, values), words))
    query = query * query.shape[-1] ** -0.5
    to_image = _apart(_beside(query, state) @ image[0].transpose(2, 3))
    weights = torch.cat([to_image, query @ words[0].transpose(2, 3)], dim=3).softmax(dim=3)
    places = image[0].shape[2]
    of_image = _apart(_beside(weights[..., :places], state) @ image[1])
    return _join(of_image + weights[..., places:] @ words[1])
