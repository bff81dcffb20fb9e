"""`merge`: the image does not enter the RNN; the softmax layer reads image and RNN output."""

import torch
from torch import Tensor

from workers.inference.captioners.recurrent import Recurrent


class Merge(Recurrent):
    sees_images = True

    def look(self, features: Tensor) -> Tensor:
        return self._image(features)

    def _first(self, images: Tensor) -> Tensor:
        return self._initial(images)

    def _see(self, h: Tensor, images: Tensor) -> Tensor:
        return torch.cat([images, h], dim=1)
