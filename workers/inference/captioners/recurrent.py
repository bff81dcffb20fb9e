"""Captioners with an RNN over word embeddings: `init`, `pre`, `par` and `merge`."""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from service.contract.formats.architectures import RecurrentConfig, compute_recurrent_widths
from workers.inference.captioners.canonical import CanonicalCaptioner
from workers.inference.captioners.cells import CELLS, Cell
from workers.inference.packing import Packed

MAX_TABLE_BYTES = 256_000_000  # 10,000 words of an LSTM of 512 take 82 MB


class RecurrentState(NamedTuple):
    cells: Tensor  # (n, width of the cell)
    images: Tensor  # (n, ·) what every step sees of them, of no width where that is nothing


class RecurrentCaptioner(CanonicalCaptioner):
    """Base of `init`, `pre`, `par` and `merge`, which differ in where the image enters."""

    sees_images: ClassVar[bool] = False  # at every step
    together = 1_024

    def _build(self) -> None:
        config = self.description.config
        assert isinstance(config, RecurrentConfig)
        _, inputs, _ = compute_recurrent_widths(self.description.architecture, config)
        self.cell: Cell = CELLS[config.cell](self.tensors, inputs)
        self._table = self._word_table()

    def begin(self, images: Tensor) -> RecurrentState:
        return RecurrentState(self._first(images), images if self.sees_images else images[:, :0])

    def hidden(self, images: Tensor, captions: Packed) -> Tensor:
        images = images[captions.image_rows]
        state = self._first(images)
        hidden = []
        for words in torch.split(captions.words, captions.counts):
            rows, state = self._step(state[: len(words)], words, images[: len(words)])
            hidden.append(rows)
        return torch.cat(hidden)

    def step(self, state: RecurrentState, words: Tensor) -> tuple[Tensor, RecurrentState]:
        hidden, cells = self._step(state.cells, words, state.images)
        return hidden, RecurrentState(cells, state.images)

    def _first(self, images: Tensor) -> Tensor:
        """The cell's state before START: learned, or what `look` gives."""
        if not self.sees_images:
            return images
        return self.cell.start(self.tensors["initial"].expand(len(images), -1))

    def _step(self, state: Tensor, words: Tensor, images: Tensor) -> tuple[Tensor, Tensor]:
        state = self.cell.step(self._read(words, images), state)
        h = state[:, : self.cell.size]
        return self._see(self._drop(h, "output"), images), state

    def select(self, state: RecurrentState, rows: Tensor) -> RecurrentState:
        return RecurrentState(state.cells[rows], state.images[rows])

    def _read(self, words: Tensor, images: Tensor) -> Tensor:  # noqa: ARG002  `par` uses it
        """The cell's input for these words: embedding times input weight, plus bias."""
        if self._table is not None:
            return self._table[words]
        embedded = self.tensors["embedding.weight"][words].to(self.cell.input_weight)
        return self._into_cell(self._drop(embedded, "embedding"))

    def _see(self, h: Tensor, images: Tensor) -> Tensor:  # noqa: ARG002  `merge` uses it
        """The input of the softmax layer."""
        return h

    def _image(self, features: Tensor) -> Tensor:
        """The image vector (n, m): features, normalised or not, through the linear layer."""
        weight = self.tensors["image.weight"]
        rows = features.to(weight)
        if self.description.config.normalize == "l2":
            rows = functional.normalize(rows, dim=1, eps=1e-30)  # zeros stay zeros
        return self._drop(torch.addmm(self.tensors["image.bias"], rows, weight), "image")

    def _into_cell(self, x: Tensor) -> Tensor:
        """`x` times the last rows of the input weight; in `par` the first rows are the image's."""
        return torch.addmm(self.cell.input_bias, x, self.cell.input_weight[-x.shape[1] :])

    def _word_table(self) -> Tensor | None:
        """Every word's embedding times the input weight, which halves the RNN's work; or None."""
        embedding = self.tensors["embedding.weight"]
        size = embedding.shape[0] * self.cell.input_weight.shape[1] * embedding.element_size()
        trained = embedding.requires_grad or self.dropout is not None
        exact = self.cell.input_weight.dtype == torch.float64
        if trained or exact or size > MAX_TABLE_BYTES:
            return None
        return self._into_cell(embedding)


class InitCaptioner(RecurrentCaptioner):
    """`init`: the image vector is the RNN's initial state."""

    def look(self, features: Tensor) -> Tensor:
        return self.cell.start(self._image(features))


class PreCaptioner(RecurrentCaptioner):
    """`pre`: the image vector is the first word; the RNN's output at the image is dropped."""

    def look(self, features: Tensor) -> Tensor:
        image = self._image(features)
        zeros = image.new_zeros(len(image), self.cell.width)
        return self.cell.step(self._into_cell(image), zeros)


class ParCaptioner(RecurrentCaptioner):
    """`par`: the image vector is concatenated to every word's embedding, image first."""

    sees_images = True

    def look(self, features: Tensor) -> Tensor:
        """The image's part of the cell's input, computed once, since it is equal for every word."""
        image = self._image(features)
        return image @ self.cell.input_weight[: image.shape[1]]

    def _read(self, words: Tensor, images: Tensor) -> Tensor:
        return super()._read(words, images) + images


class MergeCaptioner(RecurrentCaptioner):
    """`merge`: the image does not enter the RNN; the output layer reads image and RNN output."""

    sees_images = True

    def look(self, features: Tensor) -> Tensor:
        return self._image(features)

    def _see(self, h: Tensor, images: Tensor) -> Tensor:
        return torch.cat([images, h], dim=1)
