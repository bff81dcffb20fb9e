"""Preprocessing of pictures for a model: resized, cropped, rescaled, normalised.

Equal to transformers' own processors of PIL pictures (those that are called slow).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

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
    """`size`: (height, width), or the length of the shorter side; `crop`: (height, width) of the
    middle; `resample`: a number of Pillow's.
    """

    size: tuple[int, int] | int
    crop: tuple[int, int] | None
    resample: int
    factor: float
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]
    is_bgr: bool = False
    sandbox: Sandbox = "required"

    @classmethod
    def of(
        cls, found: PicturePreprocessing, sandbox: Sandbox = "required", *, is_bgr: bool = False
    ) -> Self:
        size = found.size
        return cls(
            size=(size.height, size.width) if isinstance(size, Rectangle) else size.shortest_edge,
            crop=found.crop,
            resample=found.resample,
            factor=found.rescale_factor if found.do_rescale else 1.0,
            mean=_three(found.image_mean if found.do_normalize else [0.0] * 3),
            deviation=_three(found.image_std if found.do_normalize else [1.0] * 3),
            is_bgr=is_bgr,
            sandbox=sandbox,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one prepared picture."""
        found = self.crop or self.size
        assert isinstance(found, tuple)
        return (*found, 3)

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        return _PreparedPictures(self, bundle, images)

    @property
    def fit(self) -> PictureFit:
        """Size and cropping while a picture is decoded; what is stretched is cropped afterwards."""
        resample = _RESAMPLE[self.resample]
        if isinstance(self.size, tuple):
            return PictureFit(resample, stretched=self.size[::-1])
        return PictureFit(resample, shorter=self.size, cropped=self.crop and self.crop[::-1])

    def cropped(self, picture: Pixels) -> Pixels:
        if self.crop is None:
            return picture
        top, left = (
            (whole - part) // 2 for whole, part in zip(picture.shape, self.crop, strict=False)
        )
        return picture[top : top + self.crop[0], left : left + self.crop[1]]

    def normalised(self, pixels: Tensor) -> Tensor:
        """(n, h, w, 3) of bytes to (n, 3, h, w), in the order of channels that models take."""
        rescaled = (pixels.double() * self.factor).float()  # as the library rounds
        mean, deviation = (
            torch.tensor(each, device=pixels.device) for each in (self.mean, self.deviation)
        )
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


def _three(values: Sequence[float]) -> tuple[float, float, float]:
    first, second, third = values
    return first, second, third


class _PreparedPictures:
    """Rows are read and prepared when they are asked for."""

    def __init__(
        self, preparation: PicturePreparation, bundle: Path, images: Sequence[str]
    ) -> None:
        self._preparation = preparation
        self._bundle = bundle
        self._images = images

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, rows: slice | NDArray[np.int64], /) -> NDArray[Any]:
        places = np.arange(len(self._images))[rows]
        found = np.empty((len(places), *self._preparation.shape), np.uint8)
        names = [self._images[place] for place in places]
        undecoded: dict[str, str] = {}
        how = self._preparation
        read = pictures.read_pictures(self._bundle, names, fit=how.fit, sandbox=how.sandbox)
        for row, picture in enumerate(read):
            if isinstance(picture, PictureDecodingFailure):
                undecoded[picture.image] = picture.reason
            else:
                found[row] = how.cropped(picture)
        if undecoded:
            raise pictures.build_undecoded_error(undecoded)
        return found
