"""Decoder of pictures: writes their pixels, or thumbnails of them. Runs in the sandbox's child
alone: a picture may be an attack on the program that decodes it.
"""

import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps, UnidentifiedImageError

FORMATS = ("JPEG", "PNG", "WEBP")
_NAMES = {"MPO": "JPEG"}  # a camera's JPEG with a second picture behind the first
_HIGH_BYTE = {"I;16": slice(1, None, 2), "I;16L": slice(1, None, 2), "I;16B": slice(0, None, 2)}
_MOST_TEXT = 300  # characters of a problem
_QUALITY = 80  # of WebP: a photo of 960 x 720 has about 100 kB
_GAP = 2.0  # how many times larger a picture is than asked for, when it is reduced exactly
Image.MAX_IMAGE_PIXELS = None  # our own limit is looked at before pixels are decoded

DecodedPicture = tuple[Sequence[int], bytes]  # what is told of a picture, and what is written of it
DecodePicture = Callable[[Image.Image], DecodedPicture]


class _PictureProblem(Exception):
    """Problem of a picture, worded for its owner."""


def decode_pictures(
    inputs: Sequence[Path], outputs: Sequence[Path], parameters: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Write the pixels of each picture, and tell its width and height. `fit`: as `PictureFit`, or
    None. Animations are refused.
    """

    def make(image: Image.Image) -> DecodedPicture:
        right = _convert_rgb(image)
        fitted = right if parameters["fit"] is None else _fitted(right, parameters["fit"])
        return fitted.size, fitted.tobytes()

    return _decode_each(inputs, outputs, parameters, make)


def decode_rgb(content: bytes, most_pixels: int) -> Image.Image:
    """Decode one picture, upright, without alpha. Raises what decoders raise for a wrong one."""
    with _opened(content, most_pixels) as image:
        return _convert_rgb(image)


def _convert_rgb(image: Image.Image) -> Image.Image:
    """Convert a picture to RGB; what is transparent has the colour that it has without alpha."""
    _check_frames(image)
    return _of_8_bits(_upright(image)).convert("RGB")


def shrink_pictures(
    inputs: Sequence[Path], outputs: Sequence[Path], parameters: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Write each picture as WebP, once for each of `sizes`, and tell how many bytes they have. None
    has a longer side than its size, and none is larger than the picture. Of an animation it is the
    first frame; what is transparent is white; nothing but pixels is kept.
    """
    sizes = parameters["sizes"]

    def make(image: Image.Image) -> DecodedPicture:
        image.draft(None, (round(_GAP * max(sizes)),) * 2)  # a JPEG is decoded smaller
        small, forms = _with_alpha(_upright(image)), {}
        for size in sorted(sizes, reverse=True):
            small.thumbnail((size, size), Image.Resampling.LANCZOS, _GAP)
            forms[size] = _webp(_on_white(small))
        found = [forms[size] for size in sizes]
        return [len(form) for form in found], b"".join(found)

    return _decode_each(inputs, outputs, parameters, make)


def _decode_each(
    inputs: Sequence[Path],
    outputs: Sequence[Path],
    parameters: Mapping[str, Any],
    make: DecodePicture,
) -> Mapping[str, Any]:
    """Write what is made of each picture, one after the other, and a line of JSON for each: what is
    told of it, or a text that says what is wrong. Ends early, with at least one picture, after
    `seconds` or `most_bytes`.

    `pictures`: [number of the input, first byte, bytes].
    """
    until = time.monotonic() + parameters["seconds"]
    with outputs[0].open("wb") as written, outputs[1].open("w", encoding="ascii") as lines:
        for number, start, size in parameters["pictures"]:
            told, whole = _decode_picture(
                inputs[number], start, size, parameters["most_pixels"], make
            )
            written.write(whole)
            written.flush()
            lines.write(json.dumps(told) + "\n")
            lines.flush()
            if time.monotonic() > until or written.tell() > parameters["most_bytes"]:
                break
    return {}


def _decode_picture(
    path: Path, start: int, size: int, most_pixels: int, make: DecodePicture
) -> tuple[Sequence[int] | str, bytes]:
    with path.open("rb") as stream:
        stream.seek(start)
        content = stream.read(size)
    try:
        with _opened(content, most_pixels) as image:
            return make(image)
    except _PictureProblem as wrong:
        return str(wrong), b""
    except MemoryError:
        return "decoding it takes more memory than it may", b""
    except Exception as error:  # noqa: BLE001  decoders raise many kinds for a file that is wrong
        return f"it cannot be decoded: {error}"[:_MOST_TEXT], b""


def _opened(content: bytes, most_pixels: int) -> Image.Image:
    """The picture, of which no pixel is decoded yet."""
    try:
        image = Image.open(io.BytesIO(content), formats=FORMATS)
    except UnidentifiedImageError:
        raise _PictureProblem(
            f"it is no picture in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        ) from None
    if image.width * image.height > most_pixels:
        raise _PictureProblem(
            f"it has {image.width:,} x {image.height:,} pixels, more than {most_pixels:,}"
        )
    return image


def _check_frames(image: Image.Image) -> None:
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format not in _NAMES:
        raise _PictureProblem(f"it is animated, with {frames} frames: expected one picture")


def _upright(image: Image.Image) -> Image.Image:
    """Turn a picture upright by its EXIF; with unreadable EXIF it stays as it is."""
    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  odd tags raise many kinds
        return image


def _with_alpha(image: Image.Image) -> Image.Image:
    """Convert a picture to RGB, with alpha where something is transparent."""
    image = _of_8_bits(image)
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode == "RGB":
        return image
    white = Image.new("RGBA", image.size, "white")
    white.alpha_composite(image)
    return white.convert("RGB")


def _of_8_bits(image: Image.Image) -> Image.Image:
    """Keep the upper 8 of 16 bits."""
    if image.mode not in _HIGH_BYTE:
        return image
    return Image.frombytes("L", image.size, image.tobytes()[_HIGH_BYTE[image.mode]])


def _webp(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "WEBP", quality=_QUALITY, method=4)
    return stream.getvalue()


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
