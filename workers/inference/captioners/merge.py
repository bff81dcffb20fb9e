"""`merge`: the image never enters the RNN; it stands before the RNN's output at the softmax."""

import torch
from torch import Tensor

from workers.inference.captioners.recurrent import Recurrent


class Merge(Recurrent):
    def look(self, features: Tensor) -> Tensor:
        return self._image(features)

    def begin(self, images: Tensor) -> Tensor:
        return self._initial(images)

    def _see(self, h: Tensor, images: Tensor) -> Tensor:
        return torch.cat([images, h], dim=1)
