"""Digests: the SHA-256 of files, folders and members of archives, read once until they change."""

import hashlib
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def compute_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


@dataclass(frozen=True)
class MeasuredFile:
    path: Path
    sha256: str
    bytes: int
    layer: int | None = None  # of a model: the layer whose vectors are used; None: the last


def measure_file(path: Path, member: str | None = None) -> MeasuredFile | None:
    """A file, a folder or an archive's member with its digest; None where it does not exist."""
    try:
        state = tuple(_state(path))
    except OSError:
        return None
    return _measured(path, member, state)


def fingerprint_file(path: Path) -> str | None:
    """Another one where a file, or one of a folder's, may have changed."""
    try:
        return hashlib.sha256(repr(sorted(_state(path))).encode()).hexdigest()
    except OSError:
        return None


def _state(path: Path) -> Iterator[tuple[str, int, int]]:
    """Name, size and time of a file, or of each file in a folder, to notice changes."""
    for file in _files(path):
        stat = file.stat()
        yield str(file), stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=64)
def _measured(path: Path, member: str | None, state: object) -> MeasuredFile | None:  # noqa: ARG001  a key
    """Read a file once until `state` changes."""
    try:
        if member is not None:
            with zipfile.ZipFile(path) as archive:
                content = archive.read(member)
            return MeasuredFile(path, hashlib.sha256(content).hexdigest(), len(content))
        total = sum(file.stat().st_size for file in _files(path))
        return MeasuredFile(path, _digest(path), total)
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def _digest(path: Path) -> str:
    """A file's SHA-256; of a folder, the SHA-256 of lines `digest  name` in the order of names."""
    if not path.is_dir():
        return _hex(path)
    return compute_files_digest((file.relative_to(path).as_posix(), file) for file in _files(path))


def compute_files_digest(named: Iterable[tuple[str, Path]]) -> str:
    """The SHA-256 of lines `digest  name` of (name, file), in the given order."""
    lines = [f"{_hex(file)}  {name}\n" for name, file in named]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _hex(path: Path) -> str:
    return compute_digest(path).removeprefix("sha256:")


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file())
    path.stat()
    return [path]
