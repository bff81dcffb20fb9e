"""Files of a bundle: opened by name, captions alone, digests, places of pictures."""

import hashlib
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from service.contract import limits
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import CAPTIONS, FEATURES, BundleItem, plain_tar
from service.contract.formats.bundles.plain_tar import TarMember

FileOpener = Callable[[str], AbstractContextManager[IO[bytes]]]


@contextmanager
def open_bundle_files(
    path: Path, at_most: float = math.inf
) -> Iterator[tuple[set[str], FileOpener]]:
    """The names of a bundle's files, and what opens one; a tar with more is refused."""
    if path.is_dir():
        yield set(bundles.member_names(path)), lambda name: bundles.open_member(path, name)
        return
    with bundles.open_tar(path) as archive:
        members = plain_tar.read_tar_members(archive, at_most)

        def opened(name: str) -> IO[bytes]:
            if name not in members:
                raise InvalidBundle(_absent(name, members))
            return plain_tar.open_tar_member(archive, members[name])

        yield set(members), opened


def _absent(name: str, members: Collection[str]) -> str:
    said = f"expected a file {name!r:.200} in the bundle, found none"
    inner = next((each for each in members if each.endswith(f"/{name}")), None)
    if inner is None:
        return said
    folder = inner.removesuffix(f"/{name}")
    return f"{said} but one in the folder {folder!r:.200}: `tar -cf bundle.tar -C FOLDER .`"


_CAPTIONS_CHUNK = 1 << 18


@contextmanager
def open_captions(path: Path) -> Iterator[IO[bytes]]:
    """Open captions.jsonl of a bundle, or the file itself if it is one."""
    if _is_alone(path):
        with path.open("rb") as stream:
            yield stream
        return
    with bundles.open_member(path, CAPTIONS) as stream:
        yield stream


def read_captions_in_chunks(path: Path) -> Iterator[bytes]:
    with open_captions(path) as stream:
        while chunk := stream.read(_CAPTIONS_CHUNK):
            yield chunk


def read_captions_split(path: Path, split: str) -> list[BundleItem]:
    with open_captions(path) as stream:
        return bundles.select_split(bundles.parse_items(stream, bundles.NamesInMemory()), split)


def _is_alone(path: Path) -> bool:
    """The header of a tar has zero bytes, at least where it is filled up; JSON has none."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return b"\0" not in stream.read(plain_tar.BLOCK)


PICTURES_FOLDER = "images/"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class ContentDigests:
    """Digests of a bundle's content. `whole`: of captions, features and images by name, as
    `sha256sum FILE …` lists them in the order of their names; `captions`: of captions.jsonl alone.
    """

    whole: str
    captions: str


def compute_content_digests(path: Path, captions: IO[bytes] | None = None) -> ContentDigests:
    """Read the files of a bundle; `captions` gets a copy of captions.jsonl."""
    buffer = memoryview(bytearray(_CHUNK))
    with open_bundle_files(path) as (found, opened):
        named = sorted({CAPTIONS, *filter(_counts, found)})
        digests = {
            name: _digest(opened, name, buffer, captions if name == CAPTIONS else None)
            for name in named
        }
    listed = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    whole = hashlib.sha256(listed.encode()).hexdigest()
    return ContentDigests(f"sha256:{whole}", f"sha256:{digests[CAPTIONS]}")


def _counts(name: str) -> bool:
    return name == FEATURES or name.startswith(PICTURES_FOLDER)


def _digest(opened: FileOpener, name: str, buffer: memoryview, copy: IO[bytes] | None) -> str:
    digest = hashlib.sha256()
    with opened(name) as stream:
        while size := stream.readinto(buffer):  # type: ignore[attr-defined]
            digest.update(buffer[:size])
            if copy is not None:
                copy.write(buffer[:size])
    return digest.hexdigest()


_HEAD_BYTES = 16
_BEGINNINGS = re.compile(rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|RIFF....WEBP", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PicturePlace:
    """A picture's bytes: in a file of its own, or in the middle of a tar."""

    path: Path
    start: int
    size: int


def find_pictures(bundle: Path, images: Sequence[str]) -> Iterator[PicturePlace | str]:
    """Yield for each image the place of its picture, or the reason why it has none."""
    members: Mapping[str, TarMember] | None = None
    if not bundle.is_dir():
        with bundles.open_tar(bundle) as archive:
            members = plain_tar.read_tar_members(archive)
    for image in images:
        yield _place(bundle, members, image)


def find_picture_fault(stream: IO[bytes]) -> str | None:
    """Find the fault of a picture by its size and its first bytes; None: there is none."""
    size = stream.seek(0, os.SEEK_END)
    if size > limits.PICTURE_BYTES:
        return _too_large(size)
    stream.seek(0)
    if _BEGINNINGS.match(stream.read(_HEAD_BYTES)) is None:
        return "expected a picture in JPEG, PNG or WebP, found another file"
    return None


def _too_large(size: int) -> str:
    return f"it has {size:,} bytes, more than {limits.PICTURE_BYTES:,}"


def _place(bundle: Path, members: Mapping[str, TarMember] | None, image: str) -> PicturePlace | str:
    try:
        name = plain_tar.clean_member_name(PICTURES_FOLDER + image)
        if members is None:
            path = bundles.find_plain_file(bundle, name)
            found = PicturePlace(path, 0, path.stat().st_size)
        elif name in members:
            found = PicturePlace(bundle, members[name].start, members[name].size)
        else:
            return f"there is no {name} in the bundle"
    except InvalidBundle as refused:
        return refused.detail
    if found.size > limits.PICTURE_BYTES:
        return _too_large(found.size)
    return found
