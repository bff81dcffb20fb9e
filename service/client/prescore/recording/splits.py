"""A split's images, from a dataset's folder or tar: their names and references."""

import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from prescore.errors import InvalidArgument
from prescore.files.bundles import CAPTIONS
from prescore.files.reading import readable


@dataclass(frozen=True)
class Image:
    name: str
    id: str | None
    references: tuple[str, ...]


def read(bundle: Path, split: str) -> list[Image]:
    """A split's images in order; InvalidArgument where it has none."""
    found: list[Image] = []
    others: set[str] = set()
    with _lines(bundle) as stream:
        for number, line in enumerate(stream, start=1):
            image, of = _image(bundle, number, line)
            if of == split:
                found.append(image)
            else:
                others.add(of)
    if not found:
        has = ", ".join(sorted(others)) or "none"
        raise InvalidArgument(f"expected a split named {split!r} in {bundle}, found {has}")
    return found


@contextmanager
def _lines(bundle: Path) -> Iterator[IO[bytes]]:
    with readable(bundle):
        if bundle.is_dir():
            with (bundle / CAPTIONS).open("rb") as stream:
                yield stream
        else:
            with _opened(bundle) as archive, _member(bundle, archive) as stream:
                yield stream


def _opened(bundle: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(bundle, "r:")
    except tarfile.TarError:
        expected = f"expected a dataset's folder, or a tar, with {CAPTIONS}"
        raise InvalidArgument(f"{bundle}: {expected}; found another file") from None


def _member(bundle: Path, archive: tarfile.TarFile) -> IO[bytes]:
    for name in (CAPTIONS, f"./{CAPTIONS}"):
        if name in archive.getnames():
            found = archive.extractfile(name)
            if found is not None:
                return found
    raise InvalidArgument(f"expected {CAPTIONS} in {bundle}, found none")


def _image(bundle: Path, number: int, line: bytes) -> tuple[Image, str]:
    try:
        value = json.loads(line)
        image, split, references = value["image"], value["split"], tuple(value["references"])
    except (ValueError, TypeError, KeyError):
        raise InvalidArgument(
            f'{bundle}, {CAPTIONS}, line {number}: expected {{"image", "split", "references"}}; '
            "`prescore check` says more"
        ) from None
    id_ = value.get("id")
    return Image(image, None if id_ is None else str(id_), references), split
