"""`par`: the image vector is concatenated to every word's embedding, image first."""

from torch import Tensor

from workers.inference.captioners.recurrent import Recurrent


class Par(Recurrent):
    sees_images = True

    def look(self, features: Tensor) -> Tensor:
        """The image's part of the cell's input, computed once, since it is equal for every word."""
        image = self._image(features)
        return image @ self.cell.input_weight[: image.shape[1]]

    def _first(self, images: Tensor) -> Tensor:
        return self._initial(images)

    def _read(self, words: Tensor, images: Tensor) -> Tensor:
        return super()._read(words, images) + images
