"""Objects in a folder (objects/ab/cdef…), and uploads (uploads/…) in one request or in several.

One process at a time has such a file: it is locked as long as it is open, and the kernel lifts the
lock of a process that dies.
"""

import fcntl
import hashlib
import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, BinaryIO

from service.contract.errors import BlobDamaged, BlobMissing
from service.contract.formats.digests import DIGEST, compute_digest
from service.engine.blobs.derived_files import DerivedFiles

if TYPE_CHECKING:
    from service.engine.blobs.multipart import MultipartStaging

_CHUNK = 1 << 20


class UploadLocked(Exception):
    """Another process, or another request, has the file."""


class UploadBytesLost(Exception):
    """The file has fewer bytes than were told to be there."""


@dataclass
class PartialHash:
    """The SHA-256 of a file's first `size` bytes."""

    sha: Any = field(default_factory=hashlib.sha256)
    size: int = 0

    def add(self, data: bytes | memoryview) -> None:
        self.sha.update(data)
        self.size += len(data)


class ResumableUpload:
    """An object of which more may be written; it becomes visible with `commit`.

    Bytes are hashed as they come where all before them were. Where they were not, as after a
    restart, `hash` reads them again: a gigabyte takes 0.6 to 1.5 s.
    """

    def __init__(
        self, path: Path, publish: Callable[[Path, str], None], hashed: PartialHash | None = None
    ) -> None:
        self.path = path
        self.size = 0
        self._publish = publish
        self._hashed = hashed or PartialHash()
        self._lock = RLock()  # who closes waits for a thread that writes
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise UploadLocked from None
        except OSError:  # a file system without locks
            pass

    def begin(self, size: int) -> None:
        """Go on after so many bytes; what stands behind them was not promised to be kept."""
        if os.fstat(self._file).st_size < size:
            raise UploadBytesLost
        os.ftruncate(self._file, size)
        self.size = size
        if self._hashed.size > size:
            self._hashed = PartialHash()

    def beginning(self, count: int) -> bytes:
        return os.pread(self._file, min(count, self.size), 0)

    def write(self, data: bytes) -> None:
        """Add bytes; those that were written before an error count."""
        left = memoryview(data)
        with self._lock:
            while left:
                count = os.pwrite(self._file, left, self.size)
                if self._hashed.size == self.size:
                    self._hashed.add(left[:count])
                self.size += count
                left = left[count:]

    def sync(self) -> int:
        """Make all bytes durable; returns how many there are."""
        with self._lock:
            size = self.size
            os.fsync(self._file)
        return size

    def hash(self) -> PartialHash:
        """Afterwards `digest` knows all bytes."""
        with self._lock:
            while self._hashed.size < self.size:
                data = os.pread(
                    self._file, min(_CHUNK, self.size - self._hashed.size), self._hashed.size
                )
                if not data:
                    raise UploadBytesLost
                self._hashed.add(data)
        return self._hashed

    @property
    def hashed(self) -> PartialHash:
        return self._hashed

    @property
    def digest(self) -> str:
        return f"sha256:{self.hash().sha.hexdigest()}"

    def commit(self) -> str:
        """Publishes the object under its digest, durably; returns the digest."""
        digest = self.digest
        self.sync()
        self._publish(self.path, digest)
        return digest

    def close(self) -> None:
        """Let others have the file."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def delete(self) -> None:
        with suppress(FileNotFoundError):
            self.path.unlink()
        self.close()


_LOCKED = ".locked"  # ends the names of files that their writer has locked, as long as it lives
_RESUMED = ".resumed"  # ends the names of files that may stay while nobody writes
_UNLOCKED_SECONDS = 5.0  # more than from opening such a file to locking it


class BlobUpload:
    """An object being written: a file that becomes visible with `commit`."""

    def __init__(self, path: Path, publish: Callable[[Path, str], None]) -> None:
        self.path = path
        self.size = 0
        self._publish = publish
        self._stream = path.open("xb")
        with suppress(OSError):  # a file system without locks: it is swept by its age
            fcntl.flock(self._stream, fcntl.LOCK_EX)
        self._hash = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self._hash.update(data)
        self._stream.write(data)
        self.size += len(data)

    def flush(self) -> None:
        """Afterwards the file at `path` contains all that was written."""
        self._stream.flush()

    @property
    def digest(self) -> str:
        """The digest of what was written so far."""
        return f"sha256:{self._hash.hexdigest()}"

    def commit(self) -> str:
        """Publishes the object under its digest, durably; returns the digest."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._publish(self.path, self.digest)
        self._stream.close()  # which unlocks it
        return self.digest

    def close(self) -> None:
        """Delete the file, unless it was committed."""
        try:
            with suppress(OSError):  # a full disk: what is left in the buffer is not wanted either
                self._stream.close()
        finally:
            self.path.unlink(missing_ok=True)


class BlobStore(ABC):
    """`put` and `put_file` for stores that have `upload`."""

    @abstractmethod
    def upload(self) -> AbstractContextManager[BlobUpload]: ...

    def put(self, data: bytes) -> str:
        with self.upload() as upload:
            upload.write(data)
            return upload.commit()

    def put_file(self, path: Path) -> str:
        with self.upload() as upload, path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                upload.write(chunk)
            return upload.commit()


class FileBlobs(BlobStore):
    def __init__(self, folder: Path) -> None:
        self.staging: MultipartStaging | None = None  # what clients send comes through the API
        self._objects = folder / "objects"
        self._uploads = folder / "uploads"
        self._objects.mkdir(parents=True, exist_ok=True)
        self._uploads.mkdir(parents=True, exist_ok=True)
        self.derived = DerivedFiles(folder / "derived", self.partial)

    def upload(self) -> AbstractContextManager[BlobUpload]:
        return closing(BlobUpload(self.unfinished(), self.adopt))

    def resumed(self, name: str, hashed: PartialHash | None = None) -> ResumableUpload:
        return ResumableUpload(self.unended(name), self.adopt, hashed)

    def unended(self, name: str) -> Path:
        return self._uploads / f"{name}{_RESUMED}"

    def all_unended(self, before: float) -> Iterator[str]:
        files = self._uploads.glob(f"*{_RESUMED}")
        return (file.stem for file in files if _modified(file) < before)

    def has(self, digest: str) -> bool:
        return self._target(digest).is_file()

    def path(self, digest: str, *, check: bool = True) -> Path:
        target = self._target(digest)
        if not target.is_file():
            raise BlobMissing(digest, f"no object {digest} is stored")
        if check and compute_digest(target) != digest:
            target.unlink(missing_ok=True)  # so that it is computed or uploaded again
            raise BlobDamaged(digest, f"object {digest} was damaged on disk and has been removed")
        return target

    def stream(self, digest: str) -> tuple[int, Iterator[bytes]]:
        try:
            stream = self._target(digest).open("rb")
        except FileNotFoundError:
            raise BlobMissing(digest, f"no object {digest} is stored") from None
        return os.fstat(stream.fileno()).st_size, _chunks(stream)

    def digests(self) -> Iterator[str]:
        for file in self._objects.glob("*/*"):
            yield f"sha256:{file.parent.name}{file.name}"

    def old(self, before: float) -> Iterator[str]:
        return (digest for digest in self.digests() if _modified(self._target(digest)) < before)

    def delete_old(self, digest: str, before: float) -> bool:
        """Rename the file first, so that an object put at the same moment is not lost."""
        target, aside = self._target(digest), self.partial()
        try:
            target.rename(aside)
        except FileNotFoundError:
            return False
        if _modified(aside) >= before:
            aside.rename(target)
            return False
        aside.unlink()
        self.derived.forget(place_of_object(digest))
        return True

    def sweep_uploads(self, older_than: float) -> int:
        """Delete what is older, and what a dead process has left."""
        files = [file for file in self._uploads.iterdir() if file.suffix != _RESUMED]
        old = [file for file in files if _modified(file) < older_than or _is_left(file)]
        for file in old:
            file.unlink(missing_ok=True)
        return len(old)

    def unfinished(self) -> Path:
        """A new path for an upload."""
        return self.partial().with_suffix(_LOCKED)

    def partial(self) -> Path:
        """A new path for another file that may be left."""
        return self._uploads / secrets.token_hex(16)

    def adopt(self, path: Path, digest: str) -> None:
        """Make a file with that content the object, durably."""
        target = self._target(digest)
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
        _sync_folder(target.parent)

    def _target(self, digest: str) -> Path:
        return self._objects / place_of_object(digest)


def place_of_object(digest: str) -> str:
    """The object's path in a store: ab/cdef…"""
    if not DIGEST.fullmatch(digest):
        raise BlobMissing(
            digest, f"expected sha256:<64 hex digits in lower case>, found {digest!r:.80}"
        )
    name = digest.removeprefix("sha256:")
    return f"{name[:2]}/{name[2:]}"


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    with stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _is_left(path: Path) -> bool:
    """True if its writer has died: it would hold the lock, in whatever container it runs."""
    if path.suffix != _LOCKED or _modified(path) > time.time() - _UNLOCKED_SECONDS:
        return False
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _modified(path: Path) -> float:
    """A file's time in seconds; infinity if the file was just deleted."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
