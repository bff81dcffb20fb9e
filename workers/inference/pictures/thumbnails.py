"""Thumbnails of a bundle's pictures, for people to look at. They are made in the sandbox."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from service.contract.formats import thumbnails
from service.contract.formats.bundles.files import PicturePlace, find_pictures
from workers import tensor_files
from workers.inference.pictures import children
from workers.inference.pictures.children import PictureDecodingFailure, PictureOperation

_OPERATION = "workers.inference.pictures.decoder:shrink_pictures"
_CHUNK = 1 << 20
NO_PICTURE = bytes(thumbnails.PictureDigests.BYTES)

Forms = Mapping[int, bytes]  # by the longest side that is asked for


@dataclass(frozen=True)
class PictureThumbnails:
    """The forms of a picture, which is known by its SHA-256, or why there are none."""

    picture: str
    image: str
    forms: Forms | PictureDecodingFailure


def hash_pictures(bundle: Path, images: Sequence[str]) -> Iterator[bytes]:
    """The SHA-256 of each image's picture; zeros where it has none."""
    for place in find_pictures(bundle, images):
        yield NO_PICTURE if isinstance(place, str) else _digest(place)


def make_thumbnails(
    bundle: Path,
    images: Sequence[str],
    *,
    sizes: Sequence[int] = thumbnails.SIZES,
    sandbox: str = "required",
) -> Iterator[PictureThumbnails]:
    """Yield the thumbnails of each image's picture: WebP of pixels alone. Raises SandboxUnavailable
    as `pictures.read_pictures` does.
    """
    found = list(find_pictures(bundle, images))
    operation = PictureOperation(_OPERATION, {"sizes": list(sizes)}, partial(_taken, sizes))
    forms = children.process_pictures(images, found, operation, sandbox)
    for image, place, made in zip(images, found, forms, strict=True):
        picture = NO_PICTURE if isinstance(place, str) else _digest(place)
        yield PictureThumbnails(picture.hex(), image, made)


def write_thumbnails(path: Path, made: Sequence[PictureThumbnails]) -> None:
    """The file that `service.contract.formats.thumbnails` reads."""
    tensors = {}
    undecoded: dict[str, str] = {}
    for each in made:
        if isinstance(each.forms, PictureDecodingFailure):
            undecoded[each.picture] = each.forms.reason
        else:
            for size, form in each.forms.items():
                tensors[thumbnails.name_thumbnail(each.picture, size)] = np.frombuffer(
                    form, np.uint8
                )
    tensor_files.write_tensors(path, tensors, thumbnails.dump_undecoded(undecoded))


def _taken(sizes: Sequence[int], told: object, stream: BinaryIO) -> Forms | None:
    if not isinstance(told, list) or len(told) != len(sizes):
        return None
    forms: dict[int, bytes] = {}
    for size, length in zip(sizes, told, strict=True):
        if type(length) is not int or not 0 < length <= thumbnails.MOST_BYTES:
            return None
        forms[size] = stream.read(length)
        if len(forms[size]) != length or not thumbnails.is_thumbnail(forms[size], size):
            return None
    return forms


def _digest(place: PicturePlace) -> bytes:
    found = hashlib.sha256()
    with place.path.open("rb") as stream:
        stream.seek(place.start)
        left = place.size
        while left > 0 and (chunk := stream.read(min(_CHUNK, left))):
            found.update(chunk)
            left -= len(chunk)
    return found.digest()
