"""The pictures of a bundle as pixels. They are decoded in the sandbox; what comes out is judged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from service.contract import limits
from service.contract.errors import UnusableDataset
from service.contract.formats.bundles.files import find_pictures
from service.contract.wording import count_noun
from workers.inference.pictures import children
from workers.inference.pictures.children import PictureDecodingFailure, PictureOperation

__all__ = [
    "PictureDecodingFailure",
    "PictureFit",
    "Pixels",
    "Resample",
    "build_undecoded_error",
    "read_pictures",
]

Pixels = NDArray[np.uint8]  # (height, width, 3): red, green, blue
Resample = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]

_MOST_NAMED = 10
_CHANNELS = 3
_OPERATION = "workers.inference.pictures.decoder:decode_pictures"


@dataclass(frozen=True)
class PictureFit:
    """Size and cropping of a picture, as encoders want it. Either the whole picture is
    `stretched` to a width and height; or its shorter side gets `shorter` pixels, if that is given,
    and then the middle of it is `cropped` to a width and height, if that is given.
    """

    resample: Resample = "bilinear"
    stretched: tuple[int, int] | None = None
    shorter: int | None = None
    cropped: tuple[int, int] | None = None


def read_pictures(
    bundle: Path,
    images: Sequence[str],
    *,
    fit: PictureFit | None = None,
    sandbox: str = "required",
) -> Iterator[Pixels | PictureDecodingFailure]:
    """Yield for each image, in the given order, its pixels or the reason why there are none.

    JPEG, PNG and WebP by content, whatever the name says; as the camera was held (EXIF); RGB, of 16
    bits the upper 8, without alpha, without a change by a colour profile. `sandbox`: the setting.
    Raises SandboxUnavailable where it is required and this machine has none.
    """
    operation = PictureOperation(_OPERATION, {"fit": None if fit is None else asdict(fit)}, _taken)
    return children.process_pictures(
        images, list(find_pictures(bundle, images)), operation, sandbox
    )


def build_undecoded_error(undecoded: Mapping[str, str]) -> UnusableDataset:
    """The error of a task that needs these images, by which they are named with their reasons."""
    named = [f"{image!r:.100} ({why})" for image, why in islice(undecoded.items(), _MOST_NAMED)]
    more = len(undecoded) - len(named)
    return UnusableDataset(
        f"the pictures of {count_noun(len(undecoded), 'image')} cannot be decoded: "
        f"{', '.join(named)}{f' and {more} more' if more else ''}. Mend them, or leave "
        "these images out, and add the dataset again"
    )


def _taken(told: object, stream: BinaryIO) -> Pixels | None:
    match told:
        case [int(width), int(height)] if _is_size(width, height):
            pixels = np.empty((height, width, _CHANNELS), np.uint8)
            if stream.readinto(pixels.data) == pixels.nbytes:  # type: ignore[attr-defined]
                return pixels
    return None


def _is_size(width: int, height: int) -> bool:
    whole = type(width) is int and type(height) is int  # True is an int, too
    return whole and min(width, height) > 0 and width * height <= limits.PIXELS
