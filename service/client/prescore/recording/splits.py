"""A split's images, from a dataset's folder or tar: their names and references."""

import json
from dataclasses import dataclass
from pathlib import Path

from prescore.errors import InvalidArgument
from prescore.files.bundles import CAPTIONS, open_captions


@dataclass(frozen=True)
class Image:
    name: str
    id: str | None
    references: tuple[str, ...]


def read(bundle: Path, split: str) -> list[Image]:
    """A split's images in order; InvalidArgument where it has none."""
    found: list[Image] = []
    others: set[str] = set()
    with open_captions(bundle) as stream:
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
