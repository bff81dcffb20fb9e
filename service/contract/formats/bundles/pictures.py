"""The pictures of a bundle's images: the file `images/NAME` for the image NAME. None is decoded."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from service.contract import limits
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import plain_tar
from service.contract.formats.bundles.plain_tar import Member

FOLDER = "images/"
_HEAD_BYTES = 16
_BEGINNINGS = re.compile(rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|RIFF....WEBP", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """A picture's bytes: in a file of its own, or in the middle of a tar."""

    path: Path
    start: int
    size: int


def places(bundle: Path, images: Sequence[str]) -> Iterator[Place | str]:
    """For each image the place of its picture, or why it has none."""
    members: Mapping[str, Member] | None = None
    if not bundle.is_dir():
        with bundles.open_tar(bundle) as archive:
            members = plain_tar.members(archive)
    for image in images:
        yield _place(bundle, members, image)


def oddity(stream: IO[bytes]) -> str | None:
    """What is wrong with a picture, by its size and its first bytes."""
    size = stream.seek(0, os.SEEK_END)
    if size > limits.PICTURE_BYTES:
        return _too_large(size)
    stream.seek(0)
    if _BEGINNINGS.match(stream.read(_HEAD_BYTES)) is None:
        return "expected a picture in JPEG, PNG or WebP, found another file"
    return None


def _too_large(size: int) -> str:
    return f"it has {size:,} bytes, more than {limits.PICTURE_BYTES:,}"


def _place(bundle: Path, members: Mapping[str, Member] | None, image: str) -> Place | str:
    try:
        name = plain_tar.plain_name(FOLDER + image)
        if members is None:
            path = bundles.plain_file(bundle, name)
            found = Place(path, 0, path.stat().st_size)
        elif name in members:
            found = Place(bundle, members[name].start, members[name].size)
        else:
            return f"there is no {name} in the bundle"
    except InvalidBundle as refused:
        return refused.detail
    if found.size > limits.PICTURE_BYTES:
        return _too_large(found.size)
    return found
