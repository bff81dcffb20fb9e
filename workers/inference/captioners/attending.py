"""The base of captioners whose LSTMs look at places of an image, a grid's or regions, by attention.

An image's keys are computed once; its captions or beams stand beside each other where they look.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from service.contract.formats.checkpoint_header import AttentionConfig, Normalize
from workers.inference.captioners.canonical import Canonical
from workers.inference.matrix_products import Product
from workers.inference.packing import Packed

NOWHERE = -1e30  # the score of a place that is not there: its weight is 0 exactly
_CHUNK_BYTES = {"cpu": 4_000_000, "cuda": 512_000_000}  # of what tanh is taken of at once
_BENDS = {"tanh": torch.tanh_, "relu": torch.relu_}  # in place: no copy of the largest tensor


@dataclass(frozen=True)
class Seen:
    """What later steps need of N images.

    there   (N, P)     whether there is such a place
    keys    (N, P, a)
    values  (N, P, v)  zeros where nothing is, if nothing else has a weight
    whole   (N, m)     of the image as a whole
    """

    there: Tensor
    keys: Tensor
    values: Tensor
    whole: Tensor

    @property
    def device(self) -> torch.device:
        return self.whole.device

    def __len__(self) -> int:
        return len(self.whole)

    def rows(self, beside: "Beside", part: slice) -> "Seen":
        """Of a part of the images that have rows."""
        each = self.there, self.keys, self.values, self.whole
        return Seen(*(beside.rows(rows, part) for rows in each))


class State(NamedTuple):
    cells: Tensor  # (n, width of the cells)
    of: Tensor  # (n) the image of each row
    images: Seen


class Beside:
    """Rows (n, ·) beside the others of their images: (images, width, ·)."""

    def __init__(self, of: Tensor) -> None:
        self.images, place, counts = torch.unique(of, return_inverse=True, return_counts=True)
        self.width = int(counts.max()) if len(of) else 1
        order = place.argsort(stable=True)
        firsts = (counts.cumsum(0) - counts)[place[order]]
        slots = torch.empty_like(place)
        slots[order] = torch.arange(len(of), device=of.device) - firsts
        self._at = place * self.width + slots

    def rows(self, of_images: Tensor, part: slice = slice(None)) -> Tensor:
        """Those of a part of the images; not copied where no image between them is left out."""
        images = self.images[part]
        if not len(images):
            return of_images[:0]
        first, last = int(images[0]), int(images[-1])
        all_are_there = last - first + 1 == len(images)
        return of_images[first : last + 1] if all_are_there else of_images[images]

    def spread(self, rows: Tensor) -> Tensor:
        empty = rows.new_zeros(len(self.images) * self.width, rows.shape[1])
        return empty.index_copy(0, self._at, rows).view(-1, self.width, rows.shape[1])

    def back(self, spread: Tensor) -> Tensor:
        return spread.flatten(0, 1)[self._at]


def placed(features: Tensor, normalize: Normalize) -> tuple[Tensor, Tensor]:
    """Which places (N, P, D) are there, and what they are: zeros where nothing is, as a row of NaN
    says.
    """
    there = ~features.isnan().any(dim=2)
    places = torch.where(there[:, :, None], features, 0.0)
    if normalize == "l2":
        places = functional.normalize(places, dim=2, eps=1e-30)  # zeros stay zeros
    return there, places


class Attending(Canonical):
    """Reads all words of a batch at once where they do not depend on what is looked at."""

    together = 128

    def _build(self) -> None:
        config = self.description.config
        assert isinstance(config, AttentionConfig)
        self.config = config
        self._key = Product(self.tensors["key.weight"], self.tensors["key.bias"])
        self._query = Product(self.tensors["query.weight"])
        self._bend = _BENDS[config.scores]
        self._build_cells()

    def _build_cells(self) -> None:
        raise NotImplementedError

    def look(self, features: Tensor) -> Seen:
        there, places = placed(features.to(self.tensors["key.weight"]), self.config.normalize)
        mean = places.sum(dim=1) / there.sum(dim=1, keepdim=True).clamp(min=1)
        return self._seen(there, places, mean)

    def hidden(self, images: Seen, captions: Packed) -> Tensor:
        of = captions.image_rows
        embedded = self._embedded(captions.words)
        given = self._given(embedded)
        cells = self._first(images)[of]
        done, seen = 0, []
        for count in captions.counts:
            part = given[done : done + count]
            rows, cells = self._read(part, cells[:count], of[:count], images)
            seen.append(rows)
            done += count
        of_tokens = torch.cat([of[:count] for count in captions.counts])
        return self._finish(embedded, torch.cat(seen), of_tokens, images)

    def begin(self, images: Seen) -> State:
        of = torch.arange(len(images), device=images.device)
        return State(self._first(images), of, images)

    def step(self, state: State, words: Tensor) -> tuple[Tensor, State]:
        embedded = self._embedded(words)
        rows, cells = self._read(self._given(embedded), *state)
        after = State(cells, state.of, state.images)
        return self._finish(embedded, rows, state.of, state.images), after

    def select(self, state: State, rows: Tensor) -> State:
        return State(state.cells[rows], state.of[rows], state.images)

    def _seen(self, there: Tensor, places: Tensor, mean: Tensor) -> Seen:
        """Of places (N, P, D) and their mean."""
        raise NotImplementedError

    def _first(self, images: Seen) -> Tensor:
        """The cells' state before START, of each image."""
        raise NotImplementedError

    def _given(self, embedded: Tensor) -> Tensor:
        """The words' part of the first cell's input."""
        raise NotImplementedError

    def _read(
        self, given: Tensor, cells: Tensor, of: Tensor, images: Seen
    ) -> tuple[Tensor, Tensor]:
        """Read one word in each row: what `_finish` needs, and the cells' state."""
        raise NotImplementedError

    def _finish(self, embedded: Tensor, seen: Tensor, of: Tensor, images: Seen) -> Tensor:
        """The input of the output layer, of words and what `_read` has made of them."""
        raise NotImplementedError

    def _embedded(self, words: Tensor) -> Tensor:
        embedded = self.tensors["embedding.weight"][words].to(self.tensors["key.weight"])
        return self._drop(embedded, "embedding")

    def _keys(self, places: Tensor) -> Tensor:
        return self._key(places.flatten(0, 1)).view(*places.shape[:2], -1)

    def _attend(
        self, h: Tensor, of: Tensor, images: Seen, other: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """What each row of `h` reads of its image's places (n, v), and the weight (n) that is left
        for something else, whose key is `other` (n, a): 0 where there is nothing else.
        """
        beside = Beside(of)
        query = self._query(h)
        if other is None:
            rival = query.new_full((len(query), 1), NOWHERE)
        else:
            rival = self._bend(query + other) @ self.tensors["score.weight"][:, None]
        if not len(of):
            return query.new_zeros(0, images.values.shape[2]), rival[:, 0]
        queries, rivals = beside.spread(query), beside.spread(rival)
        size = beside.width * images.keys[0].numel() * query.element_size()
        chunk = max(1, _CHUNK_BYTES[h.device.type] // size)
        parts = [
            self._attend_images(images.rows(beside, part), queries[part], rivals[part])
            for part in (slice(at, at + chunk) for at in range(0, len(beside.images), chunk))
        ]
        read, left = (beside.back(torch.cat(each)) for each in zip(*parts, strict=True))
        return read, left[:, 0]

    def _attend_images(
        self, images: Seen, queries: Tensor, rivals: Tensor
    ) -> tuple[Tensor, Tensor]:
        there = images.there[:, None]
        both = self._bend(images.keys[:, None] + queries[:, :, None])
        scores = (both @ self.tensors["score.weight"]).masked_fill(~there, NOWHERE)
        weights = torch.cat([scores, rivals], dim=2).softmax(dim=2)
        return weights[..., :-1] @ images.values, weights[..., -1:]
