"""`soft_attention`: an LSTM that looks at the image before each word (Xu et al. 2015)."""

import torch
from torch import Tensor

from workers.inference.captioners.attending import Attending, Seen
from workers.inference.captioners.cells import Lstm
from workers.inference.matrix_products import Product


class SoftAttention(Attending):
    def _build_cells(self) -> None:
        tensors, e, v = self.tensors, self.config.embedded, self.config.feature_size
        self._cell = Lstm(tensors, e + v)
        self._words = Product(self._cell.input_weight[:e], self._cell.input_bias)
        self._context = Product(self._cell.input_weight[e:])
        self._gate = Product(tensors["gate.weight"], tensors["gate.bias"])
        if self.config.output == "deep":
            self._deep = Product(tensors["deep.weight"], tensors["deep.bias"])

    def _seen(self, there: Tensor, places: Tensor, mean: Tensor) -> Seen:
        first = torch.cat(
            [
                torch.addmm(self.tensors[f"{each}.bias"], mean, self.tensors[f"{each}.weight"])
                for each in ("state", "memory")
            ],
            dim=1,
        )
        if self.config.start == "tanh":
            first = torch.tanh(first)
        return Seen(there, self._keys(places), places, first)

    def _first(self, images: Seen) -> Tensor:
        return images.whole

    def _given(self, embedded: Tensor) -> Tensor:
        return self._words(embedded)

    def _read(
        self, given: Tensor, cells: Tensor, of: Tensor, images: Seen
    ) -> tuple[Tensor, Tensor]:
        h = cells[:, : self._cell.size]
        context, _ = self._attend(h, of, images)
        context = torch.sigmoid(self._gate(h)) * context
        cells = self._cell.step(given + self._context(context), cells)
        return torch.cat([cells[:, : self._cell.size], context], dim=1), cells

    def _finish(self, embedded: Tensor, seen: Tensor, of: Tensor, images: Seen) -> Tensor:  # noqa: ARG002
        if self.config.output == "state":
            return self._drop(seen[:, : self._cell.size], "output")
        return self._drop(embedded + self._deep(seen), "output")
