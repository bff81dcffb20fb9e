"""A stack of Transformer decoder layers that reads words and looks at images.

Each image's keys and values are computed once and shared by all its captions or beams: in teacher
forcing the captions of an image stand beside each other in one row, each blind for the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.inference.packing import RowsByImage

KeysAndValues = tuple[Tensor, Tensor]  # keys and values, (rows, heads, places, size of a head)

_ROOM = 16  # words that a new state has room for


class DecoderLayer(Protocol):
    """One layer's parts between its attentions, of rows (n, m, width)."""

    def own(self, x: Tensor, times: Tensor, /) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of the words, which stand at `times` of their captions."""
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


class CrossAttentionLayer(Protocol):
    def image(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of images."""
        ...


class Decoder(Protocol):
    heads: int
    joint: bool  # words read images and words in one attention, and do not `look`

    @property
    def layers(self) -> Sequence[DecoderLayer]: ...

    weight: Tensor  # (V, o) of the output layer
    bias: Tensor | None

    def embed(self, words: Tensor, times: Tensor) -> Tensor: ...

    def images(self, seen: Tensor) -> Iterator[KeysAndValues]:
        """Yield each layer's keys and values of images, from the output of their encoder."""
        ...

    def finish(self, x: Tensor) -> Tensor:
        """The input of the output layer."""
        ...


@dataclass(frozen=True)
class DecoderState:
    """Row r belongs to image `of[r]`. A state is read on from or selected from once: what comes of
    it lies in the same memory.

    kept    keys and values of the words so far, `time` of them, and room for some more
    """

    images: Sequence[KeysAndValues]
    of: Tensor
    beside: RowsByImage
    kept: Sequence[KeysAndValues]
    time: int


def read_words(
    decoder: Decoder, seen: Tensor, words: Tensor, times: Tensor, mask: Tensor
) -> Tensor:
    """Rows (n, m, width) of words (n, m), which stand at `times` of their captions; `mask`
    (n, m, m) is true where the first word may read the second.
    """
    x = decoder.embed(words, times)
    mask = mask[:, None]
    for layer, image in zip(decoder.layers, decoder.images(seen), strict=True):
        query, keys, values = (split_heads(each, decoder.heads) for each in layer.own(x, times))
        sees = mask
        if decoder.joint:
            sees = functional.pad(mask, (image[0].shape[2], 0), value=True)
            keys, values = _after(image, (keys, values))
        x = layer.after_own(x, _attend(query, keys, values, sees))
        if not decoder.joint:
            x = layer.after_look(x, _attend(split_heads(layer.look(x), decoder.heads), *image))
        x = layer.think(x)
    return decoder.finish(x)


def begin_state(decoder: Decoder, seen: Tensor) -> DecoderState:
    images = [(k.contiguous(), v.contiguous()) for k, v in decoder.images(seen)]
    none = [(keys[:, :, :0], values[:, :, :0]) for keys, values in images]
    of = torch.arange(len(seen), device=seen.device)
    return DecoderState(images, of, RowsByImage(of), none, 0)


def read_next_words(
    decoder: Decoder, state: DecoderState, words: Tensor
) -> tuple[Tensor, DecoderState]:
    """Read one word in each row: (n, width), and the state after it."""
    times = torch.full_like(words[:, None], state.time)
    x = decoder.embed(words[:, None], times)
    kept = []
    for layer, image, before in zip(decoder.layers, state.images, state.kept, strict=True):
        query, *pair = (split_heads(each, decoder.heads) for each in layer.own(x, times))
        kept.append(_keep(before, pair, state.time))
        keys, values = (each[:, :, : state.time + 1] for each in kept[-1])
        if decoder.joint:
            x = layer.after_own(x, _attend_jointly(query, image, (keys, values), state))
        else:
            x = layer.after_own(x, _attend(query, keys, values))
            query = split_heads(layer.look(x), decoder.heads)
            x = layer.after_look(x, _attend_images(query, image, state))
        x = layer.think(x)
    return decoder.finish(x)[:, 0], replace(state, kept=kept, time=state.time + 1)


def select_rows(state: DecoderState, rows: Tensor) -> DecoderState:
    if torch.equal(rows, torch.arange(len(state.of), device=rows.device)):
        return state
    kept = [(keys[rows], values[rows]) for keys, values in state.kept]
    images, of = _without_others(state.images, state.of[rows])
    return DecoderState(images, of, RowsByImage(of), kept, state.time)


def _without_others(
    images: Sequence[KeysAndValues], of: Tensor
) -> tuple[Sequence[KeysAndValues], Tensor]:
    """The images that are in `of`, and where they are now: only what lies behind the gaps moves."""
    before = len(images[0][0])
    is_there = torch.zeros(before, dtype=torch.bool, device=of.device)
    is_there[of] = True
    there = is_there.nonzero()[:, 0]
    left = len(there)
    if left == before:
        return images, of
    gaps = (~is_there[:left]).nonzero()[:, 0]
    moved = there[there >= left]
    for each in (tensor for pair in images for tensor in pair):
        each[gaps] = each[moved]
    place = torch.arange(before, device=of.device)
    place[moved] = gaps
    return [(keys[:left], values[:left]) for keys, values in images], place[of]


def project_images(
    layers: Iterable[CrossAttentionLayer], into: nn.Module | None, seen: Tensor, heads: int
) -> Iterator[KeysAndValues]:
    """Keys and values of images for each layer; `into` is between encoder and decoder, if any."""
    seen = seen if into is None else into(seen)
    for layer in layers:
        keys, values = layer.image(seen)
        yield split_heads(keys, heads), split_heads(values, heads)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(n, m, width) -> (n, heads, m, size)."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def _join(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


def _after(first: KeysAndValues, second: Sequence[Tensor]) -> KeysAndValues:
    keys, values = second
    return torch.cat([first[0], keys], dim=2), torch.cat([first[1], values], dim=2)


def _attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    return _join(functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask))


def _keep(before: KeysAndValues, new: Sequence[Tensor], time: int) -> KeysAndValues:
    """The words' keys and values with the next one's; room is doubled where there is none."""
    keys, values = (kept if time < kept.shape[2] else _with_room(kept) for kept in before)
    keys[:, :, time], values[:, :, time] = (each[:, :, 0] for each in new)
    return keys, values


def _with_room(kept: Tensor) -> Tensor:
    n, heads, places, size = kept.shape
    larger = kept.new_empty(n, heads, max(_ROOM, 2 * places), size)
    larger[:, :, :places] = kept
    return larger


def _beside(rows: Tensor, state: DecoderState) -> Tensor:
    """(n, heads, 1, size) -> (images, heads, width, size): the rows of each image together."""
    return state.beside.spread(rows[:, :, 0]).transpose(1, 2)


def _apart(rows: Tensor, state: DecoderState) -> Tensor:
    """Back again: (images, heads, width, …) -> (n, heads, 1, …)."""
    return state.beside.back(rows.transpose(1, 2))[:, :, None]


def _attend_images(query: Tensor, image: KeysAndValues, state: DecoderState) -> Tensor:
    """Attend to images by plain products: for few rows they are faster than the kernel for many."""
    query = _beside(query * query.shape[-1] ** -0.5, state)
    weights = (query @ image[0].transpose(2, 3)).softmax(dim=3)
    return _join(_apart(weights @ image[1], state))


def _attend_jointly(
    query: Tensor, image: KeysAndValues, words: KeysAndValues, state: DecoderState
) -> Tensor:
    """One attention to the image, whose keys all its rows share, and to the words of a row."""
    query = query * query.shape[-1] ** -0.5
    to_image = _apart(_beside(query, state) @ image[0].transpose(2, 3), state)
    weights = torch.cat([to_image, query @ words[0].transpose(2, 3)], dim=3).softmax(dim=3)
    places = image[0].shape[2]
    of_image = _apart(_beside(weights[..., :places], state) @ image[1], state)
    return _join(of_image + weights[..., places:] @ words[1])


_PLACES = 2_048  # in a layer at once, so that its activations do not grow with the pictures


def read_prefix(layers: Sequence[DecoderLayer], x: Tensor, heads: int) -> Iterator[KeysAndValues]:
    """Yield each layer's keys and values of the rows (n, places, width)."""
    times = torch.arange(-x.shape[1], 0, device=x.device)[None]  # START has time 0
    parts = list(torch.split(x, max(1, _PLACES // x.shape[1])))
    for layer in layers:
        own = [[split_heads(each, heads) for each in layer.own(part, times)] for part in parts]
        yield torch.cat([keys for _, keys, _ in own]), torch.cat([values for *_, values in own])
        if layer is layers[-1]:
            return
        for at, (query, keys, values) in enumerate(own):
            seen = functional.scaled_dot_product_attention(query, keys, values)
            parts[at] = layer.think(layer.after_own(parts[at], seen.transpose(1, 2).flatten(2)))
