"""Preprocessing of pictures for a model: resized, cropped, rescaled, normalised.

Equal to transformers' own processors of PIL pictures (those that are called slow).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from service.contract.errors import CheckpointMismatch
from service.contract.formats.preprocessing import PicturePreprocessing, Rectangle
from service.contract.settings import Sandbox
from workers.inference import pictures
from workers.inference.features import Inputs
from workers.inference.pictures import PictureDecodingFailure, PictureFit, Pixels, Resample

_RESAMPLE: tuple[Resample, ...] = (  # by Pillow's numbers
    *("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"),
)


@dataclass(frozen=True)
class PicturePreparation:
    """Preparation of pictures for a model. `sandbox`: the setting; `is_bgr`: blue comes first."""

    asked: PicturePreprocessing
    sandbox: Sandbox = "required"
    is_bgr: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one prepared picture."""
        return (*self.asked.shape, 3)

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        return _PreparedPictures(self, bundle, images)

    @property
    def fit(self) -> PictureFit:
        """Size and cropping while a picture is decoded; what is stretched is cropped afterwards."""
        size, crop = self.asked.size, self.asked.crop
        resample = _RESAMPLE[self.asked.resample]
        if isinstance(size, Rectangle):
            return PictureFit(resample, stretched=(size.width, size.height))
        return PictureFit(resample, shorter=size.shortest_edge, cropped=crop and crop[::-1])

    def cropped(self, picture: Pixels) -> Pixels:
        crop = self.asked.crop
        if crop is None:
            return picture
        top, left = ((whole - part) // 2 for whole, part in zip(picture.shape, crop, strict=False))
        return picture[top : top + crop[0], left : left + crop[1]]

    def normalised(self, pixels: Tensor) -> Tensor:
        """(n, h, w, 3) of bytes to (n, 3, h, w), in the order of channels that models take."""
        asked = self.asked
        factor = asked.rescale_factor if asked.do_rescale else 1.0
        rescaled = (pixels.double() * factor).float()  # as the library rounds
        values = (
            (asked.image_mean, asked.image_std) if asked.do_normalize else ([0.0] * 3, [1.0] * 3)
        )
        mean, deviation = (torch.tensor(each, device=pixels.device) for each in values)
        found = ((rescaled - mean) / deviation).permute(0, 3, 1, 2)
        return (found.flip(1) if self.is_bgr else found).contiguous()

    def check(self, inputs: Inputs) -> None:
        """Raise CheckpointMismatch unless they are pictures that were prepared so."""
        shape = np.shape(inputs[:0])[1:]
        if shape != self.shape:
            raise CheckpointMismatch(
                f"the checkpoint expects pictures of shape {list(self.shape)}, the dataset gives "
                f"{list(shape)}: evaluate it on a dataset with pictures"
            )


@dataclass(frozen=True)
class _PreparedPictures:
    """Rows are read and prepared when they are asked for."""

    preparation: PicturePreparation
    bundle: Path
    images: Sequence[str]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows: slice | NDArray[np.int64], /) -> NDArray[Any]:
        how, names = self.preparation, [self.images[row] for row in np.arange(len(self))[rows]]
        found = np.empty((len(names), *how.shape), np.uint8)
        undecoded: dict[str, str] = {}
        read = pictures.read_pictures(self.bundle, names, fit=how.fit, sandbox=how.sandbox)
        for row, picture in enumerate(read):
            if isinstance(picture, PictureDecodingFailure):
                undecoded[picture.image] = picture.reason
            else:
                found[row] = how.cropped(picture)
        if undecoded:
            raise pictures.build_undecoded_error(undecoded)
        return found
