"""`adaptive_attention`: an LSTM that looks at the image or, where a word needs none, at a sentinel
(Lu et al. 2017).
"""

import torch
from torch import Tensor

from workers.inference.captioners.attending import Attending, Seen
from workers.inference.captioners.cells import Lstm
from workers.inference.matrix_products import Product


class AdaptiveAttention(Attending):
    """What is looked at enters no state: all words of a batch look at once."""

    def _build_cells(self) -> None:
        tensors, e, s = self.tensors, self.config.embedded, self.config.size
        self._cell = Lstm(tensors, e + s)
        sentinel = tensors["sentinel.weight"]
        given = torch.cat([self._cell.input_weight, sentinel[: e + s]], dim=1)
        self._words = Product(given[:e])
        self._whole = Product(
            given[e:], torch.cat([self._cell.input_bias, tensors["sentinel.bias"]])
        )
        self._sentinel = Product(sentinel[e + s :])
        self._sentinel_key = Product(tensors["sentinel_key.weight"], tensors["sentinel_key.bias"])

    def _seen(self, there: Tensor, places: Tensor, mean: Tensor) -> Seen:
        tensors = self.tensors
        values = torch.relu(places @ tensors["places.weight"] + tensors["places.bias"])
        whole = torch.relu(torch.addmm(tensors["image.bias"], mean, tensors["image.weight"]))
        return Seen(there, self._keys(values), values, self._whole(whole))

    def _first(self, images: Seen) -> Tensor:
        return images.whole.new_zeros(len(images), self._cell.width)

    def _given(self, embedded: Tensor) -> Tensor:
        return self._words(embedded)

    def _read(
        self, given: Tensor, cells: Tensor, of: Tensor, images: Seen
    ) -> tuple[Tensor, Tensor]:
        s = self._cell.size
        x = given + images.whole[of]
        gate = torch.sigmoid(x[:, 4 * s :] + self._sentinel(cells[:, :s]))
        cells = self._cell.step(x[:, : 4 * s], cells)
        sentinel = gate * torch.tanh(cells[:, s:])
        return torch.cat([cells[:, :s], sentinel], dim=1), cells

    def _finish(self, embedded: Tensor, seen: Tensor, of: Tensor, images: Seen) -> Tensor:  # noqa: ARG002
        h, sentinel = seen.chunk(2, dim=1)
        read, left = self._attend(h, of, images, self._sentinel_key(sentinel))
        return self._drop(h + read + left[:, None] * sentinel, "output")
