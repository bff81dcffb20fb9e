"""A model that is several files: a folder, or a tar or a zip of one. Nothing is unpacked.

A package may be an attack: names, numbers and sizes are judged before any file in it is opened.
"""

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

from service.contract import limits
from service.contract.errors import InvalidBundle, InvalidPackage
from service.contract.formats.bundles import plain_tar

MOST_RATIO = 200  # of a zip's files to the zip itself
MOST_TOKENIZER_BYTES = 64_000_000  # of a tokenizer in one file
LOCAL_HEADER = 30
_ZIP = (b"PK\3\4", b"PK\5\6")  # a file, or none; two letters may be the length of another header
_PLAIN_ZIP = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What zipfile raises for zips that are wrong: it seeks to places before the file, decodes names
# that are no UTF-8, and knows neither later versions nor patches.
_WRONG_ZIP = (
    zipfile.BadZipFile,
    NotImplementedError,
    ValueError,
    OverflowError,
    OSError,
    EOFError,
    zlib.error,
)
# Added by the system that packed the files, or by git and the hub's client that fetched them.
_BESIDE = ("__MACOSX", ".DS_Store", ".git", ".gitattributes", ".gitignore", ".cache")


@dataclass(frozen=True)
class FilePlace:
    """Place of a file's bytes as they are: in `path`, from `start` on."""

    path: Path
    start: int
    size: int


@dataclass(frozen=True)
class PackageFile:
    """A file of a package; `place` is None where it is compressed."""

    size: int
    open: Callable[[], IO[bytes] | io.FileIO]
    place: FilePlace | None


@dataclass(frozen=True)
class ModelPackage:
    """Files by their names; a folder that holds all of them is left out of the names."""

    files: Mapping[str, PackageFile]

    def read(self, name: str, most: int) -> bytes:
        """A small file as a whole; InvalidPackage where it is absent or has more bytes."""
        found = self.file(name)
        if found.size > most:
            raise InvalidPackage(
                f"{name}: {found.size:,} bytes, at most {most:,} are accepted", pointer=f"/{name}"
            )
        with _told(name), found.open() as stream:
            data = stream.read(most + 1)
        if len(data) != found.size:
            raise InvalidPackage(
                f"{name}: expected {found.size:,} bytes, found {len(data):,}", pointer=f"/{name}"
            )
        return data

    def text(self, name: str, most: int) -> str:
        try:
            return self.read(name, most).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidPackage(
                f"{name}: expected UTF-8, found byte {error.start}", pointer=f"/{name}"
            ) from None

    def file(self, name: str) -> PackageFile:
        if name not in self.files:
            there = ", ".join(sorted(self.files)[:10]) or "no file"
            raise InvalidPackage(f"expected a file {name}, found {there:.500}")
        return self.files[name]


def is_packed(path: Path) -> bool:
    """Tell whether a file begins as a tar or a zip does."""
    with path.open("rb") as stream:
        beginning = stream.read(plain_tar.BLOCK)
    return beginning.startswith(_ZIP) or is_tar(beginning)


def is_tar(beginning: bytes) -> bool:
    return beginning[257:262] == b"ustar"


def is_plain_zip(head: bytes) -> bool:
    """Tell whether the first file of a zip, which begins so, may be one that is read."""
    return int.from_bytes(head[8:10], "little") in _PLAIN_ZIP


@contextmanager
def open_package(path: Path) -> Iterator[ModelPackage]:
    """The files of a folder, or of a tar or a zip that stays open meanwhile."""
    if path.is_dir():
        yield _named(_in_folder(path))
        return
    with path.open("rb") as stream:
        if stream.read(2) == b"PK":
            with _zip(stream) as archive:
                yield _named(_in_zip(path, archive))
        else:
            yield _named(_in_tar(path, stream))


def open_partial_package(path: Path, stream: IO[bytes], file_bytes: float) -> ModelPackage:
    """The files of a tar of `file_bytes` bytes of which only the first ones are there; the last
    file may be cut off.
    """
    return _named(_in_tar(path, stream, file_bytes))


def _named(found: Mapping[str, PackageFile]) -> ModelPackage:
    files = {name: each for name, each in found.items() if not _is_beside(name)}
    if not files:
        raise InvalidPackage("expected the files of a model, found none")
    folders = {name.split("/")[0] if "/" in name else None for name in files}
    (folder, *others) = folders
    if folder is None or others:
        return ModelPackage(files)
    return ModelPackage({name.removeprefix(f"{folder}/"): each for name, each in files.items()})


def _is_beside(name: str) -> bool:
    parts = name.split("/")
    return any(part in _BESIDE for part in parts) or parts[-1].startswith("._")


def _in_folder(path: Path) -> dict[str, PackageFile]:
    found: dict[str, PackageFile] = {}
    for file in sorted(path.rglob("*")):
        if not file.is_file():
            continue
        if len(found) == limits.PACKAGE_FILES:
            raise _too_many_error()
        size = file.stat().st_size
        found[_plain(file.relative_to(path).as_posix())] = PackageFile(
            size, partial(io.FileIO, file), FilePlace(file, 0, size)
        )
    return found


def _too_many_error() -> InvalidPackage:
    return InvalidPackage(f"expected at most {limits.PACKAGE_FILES} files of a model, found more")


def _in_tar(path: Path, stream: IO[bytes], whole: float | None = None) -> dict[str, PackageFile]:
    try:
        members = plain_tar.read_tar_members(stream, limits.PACKAGE_FILES, whole=whole)
    except InvalidBundle as refused:
        raise InvalidPackage(refused.detail) from None
    return {
        name: PackageFile(
            member.size,
            partial(plain_tar.open_tar_member, stream, member),
            FilePlace(path, member.start, member.size),
        )
        for name, member in members.items()
    }


@contextmanager
def _zip(stream: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(stream)
    except _WRONG_ZIP as error:
        raise InvalidPackage(f"the zip cannot be read: {error!s:.200}") from None
    with archive:
        yield archive


def _in_zip(path: Path, archive: zipfile.ZipFile) -> dict[str, PackageFile]:
    listed = [each for each in archive.infolist() if not each.filename.endswith("/")]
    if len(listed) > limits.PACKAGE_FILES:
        raise _too_many_error()
    whole = sum(each.file_size for each in listed)
    if whole > min(limits.UPLOAD_BYTES, MOST_RATIO * path.stat().st_size):
        raise InvalidPackage(f"the zip says that its files have {whole:,} bytes: too many for it")
    found: dict[str, PackageFile] = {}
    for each in listed:
        name = _plain(each.filename)
        if name == ".":
            raise InvalidPackage(f"{each.filename!r:.200} is not a name inside the bundle")
        if name in found:
            raise InvalidPackage(f"{name!r:.200} is in the zip twice")
        _check_plain(each)
        found[name] = PackageFile(
            each.file_size, partial(_member, archive, each), _place(path, archive, each)
        )
    return found


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    with _told(info.filename):
        return cast("IO[bytes]", _UnpackedStream(archive.open(info), info.filename))


class _UnpackedStream(io.BufferedIOBase):
    """A file of a zip, read as it is unpacked; InvalidPackage where that cannot be done.

    No BufferedReader around it, which has the memory of all that is asked for before any of it is
    there.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self._name = name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        with _told(self._name):
            return self._stream.read(-1 if size is None else size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with _told(self._name):
            return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        self._stream.close()
        super().close()


@contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except _WRONG_ZIP as error:
        raise InvalidPackage(
            f"{name:.200}: cannot be unpacked: {error!s:.200}", pointer=f"/{name:.200}"
        ) from None


def _check_plain(info: zipfile.ZipInfo) -> None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise InvalidPackage(f"{info.filename!r:.200} is a link or a device; expected plain files")
    if info.flag_bits & 1 or info.compress_type not in _PLAIN_ZIP:
        raise InvalidPackage(
            f"{info.filename!r:.200} is encrypted, or compressed in another way than by deflate"
        )


def _place(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> FilePlace | None:
    if info.compress_type != zipfile.ZIP_STORED:
        return None
    stream = archive.fp
    assert stream is not None
    stream.seek(max(0, info.header_offset))  # before the file, where the zip's end says so
    header = stream.read(LOCAL_HEADER) if info.header_offset >= 0 else b""
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    start = info.header_offset + LOCAL_HEADER + lengths
    if not header.startswith(b"PK\x03\x04") or start + info.file_size > path.stat().st_size:
        raise InvalidPackage(f"{info.filename!r:.200}: the zip's list and its content disagree")
    if info.compress_size != info.file_size:
        raise InvalidPackage(f"{info.filename!r:.200}: the zip names two sizes of it")
    return FilePlace(path, start, info.file_size)


def _plain(name: str) -> str:
    try:
        return plain_tar.clean_member_name(name)
    except InvalidBundle as refused:
        raise InvalidPackage(refused.detail) from None
