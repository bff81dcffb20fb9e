"""The pictures of a bundle as pixels. They are decoded in the sandbox; what comes out is judged."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from service.contract import limits, plain_text
from service.contract.errors import SandboxUnavailable, UnusableDataset
from service.contract.formats.bundles.pictures import Place, places
from service.contract.wording import counted
from workers.sandbox import confined
from workers.sandbox.confinement import left_out
from workers.sandbox.limits import Limits

Pixels = NDArray[np.uint8]  # (height, width, 3): red, green, blue
Resample = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]

_MOST_NAMED = 10
_BATCH = 128  # pictures of a child: it takes half a second to start
_SECONDS = 20.0  # after which a child leaves the rest to the next one
_ONE_SECONDS = 40.0  # that a single picture may take
_MOST_BYTES = 256_000_000  # of pixels, after which it does so, too
_MEMORY = 2_500_000_000  # a WebP of as many pixels as may be takes 1.3 GB
_FILE_BYTES = _MOST_BYTES + 3 * limits.PIXELS
_CHANNELS = 3
_LINES_BYTES = 1_000_000
_OPERATION = "workers.inference.pictures.files:decode"


@dataclass(frozen=True)
class Fit:
    """What becomes of a picture's size, as encoders want it. Either the whole picture is
    `stretched` to a width and height; or its shorter side gets `shorter` pixels, if that is given,
    and then the middle of it is `cropped` to a width and height, if that is given.
    """

    resample: Resample = "bilinear"
    stretched: tuple[int, int] | None = None
    shorter: int | None = None
    cropped: tuple[int, int] | None = None


@dataclass(frozen=True)
class Undecoded:
    """A picture that is not there or cannot be decoded; `reason` is one line."""

    image: str
    reason: str

    def __str__(self) -> str:
        return f"{self.image}: {self.reason}"


def read(
    bundle: Path,
    images: Sequence[str],
    *,
    fit: Fit | None = None,
    sandbox: str = "required",
) -> Iterator[Pixels | Undecoded]:
    """For each image, in the given order, its pixels or why there are none.

    JPEG, PNG and WebP by content, whatever the name says; as the camera was held (EXIF); RGB, of 16
    bits the upper 8, without alpha, without a change by a colour profile. `sandbox`: the setting.
    Raises SandboxUnavailable where it is required and this machine has none.
    """
    found = list(places(bundle, images))
    at = 0
    while at < len(found):
        batch = slice(at, at + _BATCH)
        for each in _decoded(images[batch], found[batch], fit, sandbox):
            yield each
            at += 1


def unusable(undecoded: Mapping[str, str]) -> UnusableDataset:
    """The error of a work that needs these images, by which they are named with their reasons."""
    named = [f"{image!r:.100} ({why})" for image, why in islice(undecoded.items(), _MOST_NAMED)]
    more = len(undecoded) - len(named)
    return UnusableDataset(
        f"the pictures of {counted(len(undecoded), 'image')} cannot be decoded: "
        f"{', '.join(named)}{f' and {more} more' if more else ''}. Mend them, or leave "
        "these images out, and add the dataset again"
    )


def _decoded(
    images: Sequence[str], found: Sequence[Place | str], fit: Fit | None, sandbox: str
) -> Iterator[Pixels | Undecoded]:
    """Of as many images as one child could do: at least of the first."""
    given = [place for place in found if isinstance(place, Place)]
    with tempfile.TemporaryDirectory(prefix="prescore-pixels-") as folder:
        pixels, lines = Path(folder) / "pixels", Path(folder) / "lines"
        stopped = _run(given, (pixels, lines), fit, sandbox) if given else None
        told = _lines(lines, stopped) if given else iter(())
        with _Pixels(pixels) as stream:
            for image, place in zip(images, found, strict=True):
                one = place if isinstance(place, str) else next(told, None)
                if one is None:
                    return
                yield stream.next(image, one)


def _run(
    given: Sequence[Place], outputs: tuple[Path, Path], fit: Fit | None, sandbox: str
) -> str | None:
    """Let a child decode; returns why it was stopped at the picture after its last line."""
    files = list(dict.fromkeys(place.path for place in given))
    number = {path: place for place, path in enumerate(files)}
    asked = {
        "pictures": [[number[place.path], place.start, place.size] for place in given],
        "fit": None if fit is None else asdict(fit),
        "most_pixels": limits.PIXELS,
        "most_bytes": _MOST_BYTES,
        "seconds": _SECONDS,
    }
    seconds = _SECONDS + _ONE_SECONDS
    within = Limits(seconds, int(seconds), _MEMORY, _FILE_BYTES)
    without = left_out(sandbox)
    try:
        confined.run(_OPERATION, files, outputs, asked, limits=within, without=without)
    except (confined.Stopped, confined.Refused) as stopped:
        return str(stopped)
    except confined.Unavailable as unavailable:
        raise SandboxUnavailable(
            f"{unavailable}; pictures are decoded in a sandbox alone (PRESCORE_SANDBOX)"
        ) from None
    return None


def _lines(path: Path, stopped: str | None) -> Iterator[object]:
    """What the child has told of the pictures, as anybody may have written it."""
    with path.open("rb") as stream:
        whole = stream.read(_LINES_BYTES).split(b"\n")[:-1]
    for line in whole:
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            yield "the process that decoded it wrote no JSON"
    if stopped is not None:
        yield f"the process that decoded it {stopped}"
    elif not whole:
        yield "the process that decoded it told nothing of it"


class _Pixels:
    """The file of pixels, one picture after the other."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("rb") if path.exists() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def next(self, image: str, told: object) -> Pixels | Undecoded:
        match told:
            case str(reason):
                return Undecoded(image, plain_text.quoted(reason))
            case [int(width), int(height)] if _is_size(width, height):
                assert self._stream is not None
                pixels = np.empty((height, width, _CHANNELS), np.uint8)
                if self._stream.readinto(pixels.data) == pixels.nbytes:
                    return pixels
        return Undecoded(image, "the process that decoded it wrote no pixels of a picture")


def _is_size(width: int, height: int) -> bool:
    whole = type(width) is int and type(height) is int  # True is an int, too
    return whole and min(width, height) > 0 and width * height <= limits.PIXELS
