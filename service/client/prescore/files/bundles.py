"""A dataset bundle as the bytes of a tar.

The same folder gives the same bytes on any machine, so that the service recognises it: sorted
names, no times, no owners.
"""

import hashlib
import logging
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prescore import plain_text
from prescore.errors import InvalidArgument
from prescore.files import foreign
from prescore.files.reading import Body, check_format, digest_of, file_body, read_exactly, readable

CAPTIONS = "captions.jsonl"
FEATURES = "features.safetensors"
IMAGES = "images"
END = bytes(2 * tarfile.BLOCKSIZE)

_log = logging.getLogger("prescore")


@dataclass(frozen=True)
class _Member:
    path: Path
    header: bytes
    size: int

    @property
    def padding(self) -> int:
        return -self.size % tarfile.BLOCKSIZE

    @property
    def bytes_in_all(self) -> int:
        return len(self.header) + self.size + self.padding


def body(bundle: Path) -> Body:
    if bundle.is_dir():
        return folder_body(bundle)
    if bundle.name == CAPTIONS:
        raise InvalidArgument(f"{bundle} is a file of a bundle: name its folder, {bundle.parent}")
    check_format(bundle, foreign.BUNDLE)
    return file_body(bundle)


def folder_body(folder: Path) -> Body:
    with readable(folder):
        members = [_member(folder, name) for name in _names(folder)]
    size = sum(member.bytes_in_all for member in members) + len(END)
    return Body(size, lambda: _chunks(members))


def content(folder: Path) -> str:
    """The digest by which the service knows the same files in another tar: of what `sha256sum`
    prints of them, in the order of their names.
    """
    with readable(folder):
        lines = [f"{_hex_digest(folder / name)}  {name}\n" for name in _names(folder)]
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def _hex_digest(path: Path) -> str:
    return digest_of(path).removeprefix("sha256:")


def _chunks(members: Sequence[_Member]) -> Iterator[bytes]:
    for member in members:
        yield member.header
        yield from read_exactly(member.path, member.size)
        yield bytes(member.padding)
    yield END


def _member(folder: Path, name: str) -> _Member:
    path = folder / name
    if path.is_symlink() or not path.is_file():
        # As in `prescore check`: a link in a bundle could send any file of this machine.
        raise InvalidArgument(f"{path} is a link or a device; expected plain files")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name!r} is not a name in Unicode") from None
    info = tarfile.TarInfo(name)  # its times and owners are zero
    info.size = path.stat().st_size
    return _Member(path, info.tobuf(tarfile.PAX_FORMAT, "utf-8"), info.size)


def _names(folder: Path) -> list[str]:
    """The names of a bundle's files; other files in the folder are not sent."""
    top = {path.name for path in folder.iterdir()}
    if CAPTIONS not in top:
        raise InvalidArgument(f"expected {CAPTIONS} in {folder}, found none")
    if others := top - {CAPTIONS, FEATURES, IMAGES}:
        named = plain_text.quoted(", ".join(sorted(others)[:5]))
        _log.warning("left out of the bundle: %s", named)
    names = [name for name in (CAPTIONS, FEATURES) if name in top]
    return sorted(names + (_images(folder) if IMAGES in top else []))


def _images(folder: Path) -> list[str]:
    images = folder / IMAGES
    if images.is_symlink() or not images.is_dir():
        return [IMAGES]  # `_member` refuses it
    return [
        path.relative_to(folder).as_posix()
        for path in images.rglob("*")
        if path.is_symlink() or not path.is_dir()
    ]
