"""`pre`: the image vector is the first word; the RNN's output at the image is dropped."""

from torch import Tensor

from workers.inference.captioners.recurrent import Recurrent


class Pre(Recurrent):
    def look(self, features: Tensor) -> Tensor:
        image = self._image(features)
        zeros = image.new_zeros(len(image), self.cell.width)
        return self.cell.step(self._into_cell(image), zeros)

    def _first(self, images: Tensor) -> Tensor:
        return images
