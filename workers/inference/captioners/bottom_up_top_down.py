"""`bottom_up_top_down`: an LSTM looks at regions, and another one speaks (Anderson et al. 2018)."""

import torch
from torch import Tensor

from workers.inference.captioners.attending import Attending, Seen
from workers.inference.captioners.cells import Lstm
from workers.inference.matrix_products import Product


class BottomUpTopDown(Attending):
    def _build_cells(self) -> None:
        s, e = self.config.size, self.config.embedded
        v = self.config.places_size or self.config.feature_size
        self._looking = self._cell("attention_gates", s + v + e)
        self._speaking = self._cell("language_gates", v + s)
        given = self._looking.input_weight
        self._before = Product(given[:s])
        self._whole = Product(given[s : s + v], self._looking.input_bias)
        self._words = Product(given[s + v :])
        self._said = Product(self._speaking.input_weight, self._speaking.input_bias)

    def _cell(self, name: str, inputs: int) -> Lstm:
        parts = {f"gates.{part}": self.tensors[f"{name}.{part}"] for part in ("weight", "bias")}
        return Lstm(parts, inputs)

    def _seen(self, there: Tensor, places: Tensor, mean: Tensor) -> Seen:
        if self.config.places_size is not None:
            tensors = self.tensors
            made = torch.relu(places @ tensors["places.weight"] + tensors["places.bias"])
            places = torch.where(there[:, :, None], made, 0.0)
            mean = torch.relu(torch.addmm(tensors["image.bias"], mean, tensors["image.weight"]))
        return Seen(there, self._keys(places), places, self._whole(mean))

    def _first(self, images: Seen) -> Tensor:
        width = self._looking.width + self._speaking.width
        return images.whole.new_zeros(len(images), width)

    def _given(self, embedded: Tensor) -> Tensor:
        return self._words(embedded)

    def _read(
        self, given: Tensor, cells: Tensor, of: Tensor, images: Seen
    ) -> tuple[Tensor, Tensor]:
        s = self.config.size
        looking, speaking = cells.chunk(2, dim=1)
        x = given + images.whole[of] + self._before(speaking[:, :s])
        looking = self._looking.step(x, looking)
        read, _ = self._attend(looking[:, :s], of, images)
        said = self._said(torch.cat([read, looking[:, :s]], dim=1))
        speaking = self._speaking.step(said, speaking)
        return speaking[:, :s], torch.cat([looking, speaking], dim=1)

    def _finish(self, embedded: Tensor, seen: Tensor, of: Tensor, images: Seen) -> Tensor:  # noqa: ARG002
        return self._drop(seen, "output")
