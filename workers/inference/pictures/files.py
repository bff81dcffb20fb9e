"""Opens pictures and writes their pixels. Runs in the sandbox's child alone: a picture may be an
attack on the program that decodes it.
"""

import io
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from PIL import Image, ImageOps, UnidentifiedImageError

FORMATS = ("JPEG", "PNG", "WEBP")
_NAMES = {"MPO": "JPEG"}  # a camera's JPEG with a second picture behind the first
_HIGH_BYTE = {"I;16": slice(1, None, 2), "I;16L": slice(1, None, 2), "I;16B": slice(0, None, 2)}
_MOST_TEXT = 300  # characters of a problem
Image.MAX_IMAGE_PIXELS = None  # our own limit is looked at before pixels are decoded


class _Wrong(Exception):
    """What is wrong with a picture, for its owner."""


def decode(
    inputs: Sequence[Path], outputs: Sequence[Path], parameters: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Write the pixels of each picture, one after the other, and a line of JSON for each: its width
    and height, or a text that says what is wrong. Ends early, with at least one picture, after
    `seconds` or `most_bytes`.

    `pictures`: [number of the input, first byte, bytes]; `fit`: as `pictures.Fit`, or None.
    """
    until = time.monotonic() + parameters["seconds"]
    with outputs[0].open("wb") as pixels, outputs[1].open("w", encoding="ascii") as lines:
        for number, start, size in parameters["pictures"]:
            found = _told(inputs[number], start, size, parameters, pixels)
            pixels.flush()
            lines.write(json.dumps(found) + "\n")
            lines.flush()
            if time.monotonic() > until or pixels.tell() > parameters["most_bytes"]:
                break
    return {}


def _told(
    path: Path, start: int, size: int, parameters: Mapping[str, Any], pixels: BinaryIO
) -> Sequence[int] | str:
    try:
        image = _opened(path, start, size, parameters["most_pixels"])
        fitted = image if parameters["fit"] is None else _fitted(image, parameters["fit"])
        whole = fitted.tobytes()
    except _Wrong as wrong:
        return str(wrong)
    except MemoryError:
        return "decoding it takes more memory than it may"
    except Exception as error:  # noqa: BLE001  decoders raise many kinds for a file that is wrong
        return f"it cannot be decoded: {error}"[:_MOST_TEXT]
    pixels.write(whole)
    return fitted.size


def _opened(path: Path, start: int, size: int, most_pixels: int) -> Image.Image:
    """The whole picture, upright, in RGB."""
    with path.open("rb") as stream:
        stream.seek(start)
        content = stream.read(size)
    try:
        image = Image.open(io.BytesIO(content), formats=FORMATS)
    except UnidentifiedImageError:
        raise _Wrong(f"it is no picture in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}") from None
    with image:
        if image.width * image.height > most_pixels:
            raise _Wrong(
                f"it has {image.width:,} x {image.height:,} pixels, more than {most_pixels:,}"
            )
        frames = getattr(image, "n_frames", 1)
        if frames > 1 and image.format not in _NAMES:
            raise _Wrong(f"it is animated, with {frames} frames: expected one picture")
        image.load()
        return _rgb(_upright(image))


def _upright(image: Image.Image) -> Image.Image:
    """As the camera was held; a picture with EXIF that nobody can read stays as it is."""
    try:
        return ImageOps.exif_transpose(image)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  odd tags raise many kinds
        return image


def _rgb(image: Image.Image) -> Image.Image:
    """Of 16 bits the upper 8; what is transparent has the colour that it has without alpha."""
    if image.mode in _HIGH_BYTE:
        upper = image.tobytes()[_HIGH_BYTE[image.mode]]
        image = Image.frombytes("L", image.size, upper)
    return image.convert("RGB")


def _fitted(image: Image.Image, fit: Mapping[str, Any]) -> Image.Image:
    resample = Image.Resampling[fit["resample"].upper()]
    if fit["stretched"] is not None:
        return image.resize(tuple(fit["stretched"]), resample)
    if fit["shorter"] is not None:
        short, long = sorted(image.size)
        longer = int(fit["shorter"] * long / short)
        upright = image.width <= image.height
        size = (fit["shorter"], longer) if upright else (longer, fit["shorter"])
        image = image.resize(size, resample)
    if fit["cropped"] is not None:
        width, height = fit["cropped"]
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
    return image
