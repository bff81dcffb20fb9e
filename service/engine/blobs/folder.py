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
from contextlib import contextmanager, suppress
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


class BlobUpload:
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
        """The hash of all bytes."""
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


class Blobs(ABC):
    """A store of objects. What is uploaded lies in `uploads` of a folder until it is whole."""

    def __init__(self, folder: Path, staging: "MultipartStaging | None" = None) -> None:
        """`staging`: where clients send large files to the store themselves."""
        self.staging = staging
        self._uploads = folder / "uploads"
        self._uploads.mkdir(parents=True, exist_ok=True)
        self.derived = DerivedFiles(folder / "derived", self._new_file)

    @contextmanager
    def upload(self) -> Iterator[BlobUpload]:
        """An upload, which is deleted at the end of the block unless it was committed."""
        upload = BlobUpload(self._new_file().with_suffix(_LOCKED), self.publish)
        try:
            yield upload
        finally:
            upload.delete()

    def resumed(self, name: str, hashed: PartialHash | None = None) -> BlobUpload:
        """An upload that stays when it is closed; UploadLocked while another request has it."""
        return BlobUpload(self.unended(name), self.publish, hashed)

    def unended(self, name: str) -> Path:
        """The file of such an upload."""
        return self._uploads / f"{name}{_RESUMED}"

    def all_unended(self, before: float) -> Iterator[str]:
        """The names of such uploads to which nothing was written since that time."""
        files = self._uploads.glob(f"*{_RESUMED}")
        return (file.stem for file in files if _modified(file) < before)

    def put(self, data: bytes) -> str:
        with self.upload() as upload:
            upload.write(data)
            return upload.commit()

    def put_file(self, path: Path) -> str:
        with self.upload() as upload, path.open("rb") as stream:
            for chunk in _chunks(stream):
                upload.write(chunk)
            return upload.commit()

    @abstractmethod
    def path(self, digest: str, *, check: bool = True) -> Path:
        """A local file with the content; raises BlobMissing or, with `check`, BlobDamaged."""

    @abstractmethod
    def has(self, digest: str) -> bool: ...

    @abstractmethod
    def stream(self, digest: str) -> tuple[int, Iterator[bytes]]:
        """An object's size and unchecked content, without a copy here; raises BlobMissing."""

    @abstractmethod
    def old(self, before: float) -> Iterator[str]:
        """Digests of objects that were last put before that time."""

    @abstractmethod
    def delete_old(self, digest: str, before: float) -> bool:
        """Delete an object unless it was put again since that time; whether it was deleted."""

    @abstractmethod
    def publish(self, path: Path, digest: str) -> None:
        """Make a file with that content the object, durably."""

    def sweep_uploads(self, older_than: float) -> int:
        """Delete files of uploads that never ended: those of processes that are dead, where the
        file system can tell, and those older than that time.
        """
        files = [file for file in self._uploads.iterdir() if file.suffix != _RESUMED]
        old = [file for file in files if _modified(file) < older_than or _is_left(file)]
        for file in old:
            file.unlink(missing_ok=True)
        return len(old)

    def _new_file(self) -> Path:
        """The path of a new file, which is swept when it is old."""
        return self._uploads / secrets.token_hex(16)


class FileBlobs(Blobs):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._objects = folder / "objects"
        self._objects.mkdir(exist_ok=True)

    def has(self, digest: str) -> bool:
        return self._target(digest).is_file()

    def path(self, digest: str, *, check: bool = True) -> Path:
        target = self._target(digest)
        if not target.is_file():
            raise missing_blob(digest)
        if check and compute_digest(target) != digest:
            target.unlink(missing_ok=True)  # so that it is computed or uploaded again
            raise BlobDamaged(digest, f"object {digest} was damaged on disk and has been removed")
        return target

    def stream(self, digest: str) -> tuple[int, Iterator[bytes]]:
        try:
            stream = self._target(digest).open("rb")
        except FileNotFoundError:
            raise missing_blob(digest) from None
        return os.fstat(stream.fileno()).st_size, _chunks(stream)

    def old(self, before: float) -> Iterator[str]:
        for file in self._objects.glob("*/*"):
            if _modified(file) < before:
                yield f"sha256:{file.parent.name}{file.name}"

    def delete_old(self, digest: str, before: float) -> bool:
        """Rename the file first, so that an object put at the same moment is not lost."""
        target, aside = self._target(digest), self._new_file()
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

    def publish(self, path: Path, digest: str) -> None:
        target = self._target(digest)
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
        sync_folder(target.parent)

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


def missing_blob(digest: str) -> BlobMissing:
    return BlobMissing(digest, f"no object {digest} is stored")


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


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
