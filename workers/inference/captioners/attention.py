"""Captioners whose LSTMs look at places of an image, a grid's or regions, by attention.

An image's keys are computed once; its captions or beams stand beside each other where they look.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from service.contract.formats.architectures import AttentionConfig, Normalize
from workers.inference.captioners.canonical import CanonicalCaptioner
from workers.inference.captioners.cells import LstmCell
from workers.inference.devices import Product
from workers.inference.packing import Packed, RowsByImage

NOWHERE = -1e30  # the score of a place that is not there: its weight is 0 exactly
_CHUNK_BYTES = {"cpu": 4_000_000, "cuda": 512_000_000}  # of what tanh is taken of at once
_BENDS = {"tanh": torch.tanh_, "relu": torch.relu_}  # in place: no copy of the largest tensor


@dataclass(frozen=True)
class AttendedImages:
    """Images (N of them), as later steps need them.

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

    def rows(self, beside: RowsByImage, part: slice) -> "AttendedImages":
        """Select a part of the images that have rows."""
        each = self.there, self.keys, self.values, self.whole
        return AttendedImages(*(beside.rows(rows, part) for rows in each))


class AttentionState(NamedTuple):
    cells: Tensor  # (n, width of the cells)
    of: Tensor  # (n) the image of each row
    images: AttendedImages


def mask_missing_places(features: Tensor, normalize: Normalize) -> tuple[Tensor, Tensor]:
    """Mask of the places that are there (N, P), and the places (N, P, D) with zeros instead of NaN,
    which stands where nothing is.
    """
    there = ~features.isnan().any(dim=2)
    places = torch.where(there[:, :, None], features, 0.0)
    if normalize == "l2":
        places = functional.normalize(places, dim=2, eps=1e-30)  # zeros stay zeros
    return there, places


class AttentionCaptioner(CanonicalCaptioner):
    """Base of captioners with attention: all words of a batch are read at once if possible."""

    together = 128
    _words: Product  # the words' part of the first cell's input
    _width: int  # of the cells' state

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

    def look(self, features: Tensor) -> AttendedImages:
        there, places = mask_missing_places(
            features.to(self.tensors["key.weight"]), self.config.normalize
        )
        mean = places.sum(dim=1) / there.sum(dim=1, keepdim=True).clamp(min=1)
        return self._seen(there, places, mean)

    def hidden(self, images: AttendedImages, captions: Packed) -> Tensor:
        of = captions.image_rows
        embedded = self._embedded(captions.words)
        given = self._words(embedded)
        cells = self._first(images)[of]
        seen = []
        for part in torch.split(given, captions.counts):
            rows, cells = self._read(part, cells[: len(part)], of[: len(part)], images)
            seen.append(rows)
        of_tokens = torch.cat([of[:count] for count in captions.counts])
        return self._finish(embedded, torch.cat(seen), of_tokens, images)

    def begin(self, images: AttendedImages) -> AttentionState:
        of = torch.arange(len(images), device=images.device)
        return AttentionState(self._first(images), of, images)

    def step(self, state: AttentionState, words: Tensor) -> tuple[Tensor, AttentionState]:
        embedded = self._embedded(words)
        rows, cells = self._read(self._words(embedded), *state)
        after = AttentionState(cells, state.of, state.images)
        return self._finish(embedded, rows, state.of, state.images), after

    def select(self, state: AttentionState, rows: Tensor) -> AttentionState:
        return AttentionState(state.cells[rows], state.of[rows], state.images)

    def _seen(self, there: Tensor, places: Tensor, mean: Tensor) -> AttendedImages:
        """Prepare the images for later steps, from their places (N, P, D) and the mean of these."""
        raise NotImplementedError

    def _first(self, images: AttendedImages) -> Tensor:
        """The cells' state before START, of each image: zeros, unless it is learned."""
        return images.whole.new_zeros(len(images), self._width)

    def _read(
        self, given: Tensor, cells: Tensor, of: Tensor, images: AttendedImages
    ) -> tuple[Tensor, Tensor]:
        """Read one word in each row: what `_finish` needs, and the cells' state."""
        raise NotImplementedError

    def _finish(self, embedded: Tensor, seen: Tensor, of: Tensor, images: AttendedImages) -> Tensor:
        """The input of the output layer, of words and what `_read` has made of them."""
        raise NotImplementedError

    def _embedded(self, words: Tensor) -> Tensor:
        embedded = self.tensors["embedding.weight"][words].to(self.tensors["key.weight"])
        return self._drop(embedded, "embedding")

    def _keys(self, places: Tensor) -> Tensor:
        return self._key(places.flatten(0, 1)).view(*places.shape[:2], -1)

    def _attend(
        self, h: Tensor, of: Tensor, images: AttendedImages, other: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Read each row's places of its image (n, v); and the weight (n) that is left for something
        else, whose key is `other` (n, a): 0 where there is nothing else.
        """
        beside = RowsByImage(of)
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
        self, images: AttendedImages, queries: Tensor, rivals: Tensor
    ) -> tuple[Tensor, Tensor]:
        there = images.there[:, None]
        both = self._bend(images.keys[:, None] + queries[:, :, None])
        scores = (both @ self.tensors["score.weight"]).masked_fill(~there, NOWHERE)
        weights = torch.cat([scores, rivals], dim=2).softmax(dim=2)
        return weights[..., :-1] @ images.values, weights[..., -1:]


class SoftAttentionCaptioner(AttentionCaptioner):
    """`soft_attention`: an LSTM that looks at the image before each word (Xu et al. 2015)."""

    def _build_cells(self) -> None:
        tensors, e, v = self.tensors, self.config.embedded, self.config.feature_size
        self._cell = LstmCell(tensors, e + v)
        self._words = Product(self._cell.input_weight[:e], self._cell.input_bias)
        self._context = Product(self._cell.input_weight[e:])
        self._gate = Product(tensors["gate.weight"], tensors["gate.bias"])
        if self.config.output == "deep":
            self._deep = Product(tensors["deep.weight"], tensors["deep.bias"])

    def _seen(self, there: Tensor, places: Tensor, mean: Tensor) -> AttendedImages:
        first = torch.cat(
            [
                torch.addmm(self.tensors[f"{each}.bias"], mean, self.tensors[f"{each}.weight"])
                for each in ("state", "memory")
            ],
            dim=1,
        )
        if self.config.start == "tanh":
            first = torch.tanh(first)
        return AttendedImages(there, self._keys(places), places, first)

    def _first(self, images: AttendedImages) -> Tensor:
        return images.whole

    def _read(
        self, given: Tensor, cells: Tensor, of: Tensor, images: AttendedImages
    ) -> tuple[Tensor, Tensor]:
        h = cells[:, : self._cell.size]
        context, _ = self._attend(h, of, images)
        context = torch.sigmoid(self._gate(h)) * context
        cells = self._cell.step(given + self._context(context), cells)
        return torch.cat([cells[:, : self._cell.size], context], dim=1), cells

    def _finish(self, embedded: Tensor, seen: Tensor, of: Tensor, images: AttendedImages) -> Tensor:  # noqa: ARG002
        if self.config.output == "state":
            return self._drop(seen[:, : self._cell.size], "output")
        return self._drop(embedded + self._deep(seen), "output")


class AdaptiveAttentionCaptioner(AttentionCaptioner):
    """`adaptive_attention`: an LSTM that looks at the image or at a sentinel (Lu et al. 2017).

    All words of a batch look at once, since nothing that is looked at enters a state.
    """

    def _build_cells(self) -> None:
        tensors, e, s = self.tensors, self.config.embedded, self.config.size
        self._cell = LstmCell(tensors, e + s)
        self._width = self._cell.width
        sentinel = tensors["sentinel.weight"]
        given = torch.cat([self._cell.input_weight, sentinel[: e + s]], dim=1)
        self._words = Product(given[:e])
        self._whole = Product(
            given[e:], torch.cat([self._cell.input_bias, tensors["sentinel.bias"]])
        )
        self._sentinel = Product(sentinel[e + s :])
        self._sentinel_key = Product(tensors["sentinel_key.weight"], tensors["sentinel_key.bias"])

    def _seen(self, there: Tensor, places: Tensor, mean: Tensor) -> AttendedImages:
        tensors = self.tensors
        values = torch.relu(places @ tensors["places.weight"] + tensors["places.bias"])
        whole = torch.relu(torch.addmm(tensors["image.bias"], mean, tensors["image.weight"]))
        return AttendedImages(there, self._keys(values), values, self._whole(whole))

    def _read(
        self, given: Tensor, cells: Tensor, of: Tensor, images: AttendedImages
    ) -> tuple[Tensor, Tensor]:
        s = self._cell.size
        x = given + images.whole[of]
        gate = torch.sigmoid(x[:, 4 * s :] + self._sentinel(cells[:, :s]))
        cells = self._cell.step(x[:, : 4 * s], cells)
        sentinel = gate * torch.tanh(cells[:, s:])
        return torch.cat([cells[:, :s], sentinel], dim=1), cells

    def _finish(self, embedded: Tensor, seen: Tensor, of: Tensor, images: AttendedImages) -> Tensor:  # noqa: ARG002
        h, sentinel = seen.chunk(2, dim=1)
        read, left = self._attend(h, of, images, self._sentinel_key(sentinel))
        return self._drop(h + read + left[:, None] * sentinel, "output")


class BottomUpTopDownCaptioner(AttentionCaptioner):
    """`bottom_up_top_down`: an LSTM looks at regions, a second speaks (Anderson et al. 2018)."""

    def _build_cells(self) -> None:
        s, e = self.config.size, self.config.embedded
        v = self.config.places_size or self.config.feature_size
        self._looking = self._cell("attention_gates", s + v + e)
        self._speaking = self._cell("language_gates", v + s)
        self._width = self._looking.width + self._speaking.width
        given = self._looking.input_weight
        self._before = Product(given[:s])
        self._whole = Product(given[s : s + v], self._looking.input_bias)
        self._words = Product(given[s + v :])
        self._said = Product(self._speaking.input_weight, self._speaking.input_bias)

    def _cell(self, name: str, inputs: int) -> LstmCell:
        parts = {f"gates.{part}": self.tensors[f"{name}.{part}"] for part in ("weight", "bias")}
        return LstmCell(parts, inputs)

    def _seen(self, there: Tensor, places: Tensor, mean: Tensor) -> AttendedImages:
        if self.config.places_size is not None:
            tensors = self.tensors
            made = torch.relu(places @ tensors["places.weight"] + tensors["places.bias"])
            places = torch.where(there[:, :, None], made, 0.0)
            mean = torch.relu(torch.addmm(tensors["image.bias"], mean, tensors["image.weight"]))
        return AttendedImages(there, self._keys(places), places, self._whole(mean))

    def _read(
        self, given: Tensor, cells: Tensor, of: Tensor, images: AttendedImages
    ) -> tuple[Tensor, Tensor]:
        s = self.config.size
        looking, speaking = cells.chunk(2, dim=1)
        x = given + images.whole[of] + self._before(speaking[:, :s])
        looking = self._looking.step(x, looking)
        read, _ = self._attend(looking[:, :s], of, images)
        said = self._said(torch.cat([read, looking[:, :s]], dim=1))
        speaking = self._speaking.step(said, speaking)
        return speaking[:, :s], torch.cat([looking, speaking], dim=1)

    def _finish(self, embedded: Tensor, seen: Tensor, of: Tensor, images: AttendedImages) -> Tensor:  # noqa: ARG002
        return self._drop(seen, "output")
