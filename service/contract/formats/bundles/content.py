"""What a bundle is identified by: the content of its files, in whatever order and with whatever
times a tar has them.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from service.contract.formats.bundles import CAPTIONS, FEATURES
from service.contract.formats.bundles.files import Open, files

_IMAGES = "images/"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Content:
    """`whole`: of captions, features and images by name, as `sha256sum FILE …` lists them in the
    order of their names; `captions`: of captions.jsonl alone.
    """

    whole: str
    captions: str


def content_of(path: Path, captions: IO[bytes] | None = None) -> Content:
    """Read the files of a bundle; `captions` gets a copy of captions.jsonl."""
    buffer = memoryview(bytearray(_CHUNK))
    with files(path) as (found, opened):
        named = sorted({CAPTIONS, *filter(_counts, found)})
        digests = {
            name: _digest(opened, name, buffer, captions if name == CAPTIONS else None)
            for name in named
        }
    listed = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    whole = hashlib.sha256(listed.encode()).hexdigest()
    return Content(f"sha256:{whole}", f"sha256:{digests[CAPTIONS]}")


def _counts(name: str) -> bool:
    return name == FEATURES or name.startswith(_IMAGES)


def _digest(opened: Open, name: str, buffer: memoryview, copy: IO[bytes] | None) -> str:
    digest = hashlib.sha256()
    with opened(name) as stream:
        while size := stream.readinto(buffer):  # type: ignore[attr-defined]
            digest.update(buffer[:size])
            if copy is not None:
                copy.write(buffer[:size])
    return digest.hexdigest()
