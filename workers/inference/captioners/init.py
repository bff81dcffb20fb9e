"""`init`: the image vector is the RNN's initial state."""

from torch import Tensor

from workers.inference.captioners.recurrent import Recurrent


class Init(Recurrent):
    def look(self, features: Tensor) -> Tensor:
        return self.cell.start(self._image(features))

    def _first(self, images: Tensor) -> Tensor:
        return images
